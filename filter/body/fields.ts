// The keys of a body that matter, by where they stand.

import { KEY_FIELDS } from '../../wire/names';
import { equals, Text } from '../abi/text';

/** Numbers of the keys. Those up to LAST_TEXT are kept as texts. */
export enum Field {
  NONE,
  MODEL,
  // Affinity keys in the order of KEY_FIELDS.
  PROMPT_CACHE_KEY,
  CONVERSATION,
  USER_ID,
  SESSION_ID,
  SAFETY_IDENTIFIER,
  USER,
  SERVICE_TIER,
  STREAM,
  // How many tokens the answer may have.
  MAX_TOKENS,
  MAX_COMPLETION_TOKENS,
  MAX_OUTPUT_TOKENS,
  PRIORITY,
  PREVIOUS_RESPONSE_ID,
  METADATA,
  // What the prompt consists of.
  MESSAGES,
  INPUT,
  PROMPT,
  SYSTEM,
  INSTRUCTIONS,
  TOOLS,
  // Within these.
  ID,
  ROLE,
  TYPE,
  CONTENT,
  OUTPUT,
}

export const LAST_TEXT: Field = Field.SERVICE_TIER;
export const FIRST_KEY_FIELD: Field = Field.PROMPT_CACHE_KEY;
export const FIRST_LIMIT: Field = Field.MAX_TOKENS;
export const LAST_LIMIT: Field = Field.MAX_OUTPUT_TOKENS;
export const FIRST_PROMPT: Field = Field.MESSAGES;
export const LAST_PROMPT: Field = Field.TOOLS;

const keyNames: StaticArray<Text> = new StaticArray<Text>(KEY_FIELDS.length);
for (let i = 0; i < KEY_FIELDS.length; i++) keyNames[i] = new Text(KEY_FIELDS[i]);

/** Number of the key field that is configured by this name, -1 if there is none. */
export function keyFieldNamed(at: usize, length: usize): i32 {
  for (let i = 0; i < keyNames.length; i++) {
    const name = unchecked(keyNames[i]);
    if (equals(at, length, name.at, name.length)) return i;
  }
  return -1;
}

/** What a container is, as far as it matters. */
export enum Context {
  /** Nothing in it matters. */
  NONE,
  /** The body itself. */
  TOP,
  CONVERSATION,
  METADATA,
  /** A list of messages, or of the parts of a message's content. */
  LIST,
  /** A message, or a part of its content. */
  ITEM,
  TOOLS,
}

/** Longest name that is compared, and room for it. */
export const NAME_LIMIT: usize = 32;

/** The context of a container that is the value of `field` in `parent`, or an element of it. */
export function contextIn(parent: Context, field: Field, isObject: bool): Context {
  if (parent == Context.TOP) {
    if (isObject) {
      if (field == Field.CONVERSATION) return Context.CONVERSATION;
      if (field == Field.METADATA) return Context.METADATA;
    } else {
      if (field == Field.MESSAGES || field == Field.INPUT) return Context.LIST;
      if (field == Field.TOOLS) return Context.TOOLS;
    }
  } else if (parent == Context.LIST) {
    if (isObject) return Context.ITEM;
  } else if (parent == Context.ITEM) {
    if (field == Field.OUTPUT) return isObject ? Context.ITEM : Context.LIST;
    if (!isObject && field == Field.CONTENT) return Context.LIST;
  }
  return Context.NONE;
}

/** A name of at most 24 bytes as three words, so that it is compared at once. */
class Name {
  a: u64 = 0;
  b: u64 = 0;
  c: u64 = 0;
  field: Field;

  constructor(name: string, field: Field) {
    const block = heap.alloc(24);
    memory.fill(block, 0, 24);
    for (let i = 0; i < name.length; i++) store<u8>(block + <usize>i, <u8>name.charCodeAt(i));
    this.a = load<u64>(block);
    this.b = load<u64>(block, 8);
    this.c = load<u64>(block, 16);
    this.field = field;
  }
}

const top: StaticArray<Name> = [
  new Name('model', Field.MODEL),
  new Name('messages', Field.MESSAGES),
  new Name('stream', Field.STREAM),
  new Name('input', Field.INPUT),
  new Name('prompt', Field.PROMPT),
  new Name('system', Field.SYSTEM),
  new Name('instructions', Field.INSTRUCTIONS),
  new Name('tools', Field.TOOLS),
  new Name('max_tokens', Field.MAX_TOKENS),
  new Name('max_completion_tokens', Field.MAX_COMPLETION_TOKENS),
  new Name('max_output_tokens', Field.MAX_OUTPUT_TOKENS),
  new Name('prompt_cache_key', Field.PROMPT_CACHE_KEY),
  new Name('conversation', Field.CONVERSATION),
  new Name('metadata', Field.METADATA),
  new Name('session_id', Field.SESSION_ID),
  new Name('safety_identifier', Field.SAFETY_IDENTIFIER),
  new Name('user', Field.USER),
  new Name('service_tier', Field.SERVICE_TIER),
  new Name('priority', Field.PRIORITY),
  new Name('previous_response_id', Field.PREVIOUS_RESPONSE_ID),
];
const item: StaticArray<Name> = [
  new Name('role', Field.ROLE),
  new Name('content', Field.CONTENT),
  // What a tool has given back.
  new Name('output', Field.OUTPUT),
  new Name('type', Field.TYPE),
];
const conversation: StaticArray<Name> = [new Name('id', Field.ID)];
const metadata: StaticArray<Name> = [new Name('user_id', Field.USER_ID)];

/** The field that a key names in a context; the name lies in a block of NAME_LIMIT bytes that ends in zeros. */
export function fieldIn(context: Context, name: usize, length: usize): Field {
  if (length == 0 || length > 24) return Field.NONE;
  if (context == Context.ITEM) return find(item, name);
  if (context == Context.TOP) return find(top, name);
  if (context == Context.METADATA) return find(metadata, name);
  return context == Context.CONVERSATION ? find(conversation, name) : Field.NONE;
}

function find(names: StaticArray<Name>, name: usize): Field {
  const a = load<u64>(name);
  const b = load<u64>(name, 8);
  const c = load<u64>(name, 16);
  for (let i = 0; i < names.length; i++) {
    const known = unchecked(names[i]);
    if (known.a == a && known.b == b && known.c == c) return known.field;
  }
  return Field.NONE;
}

// What messages and their parts may hold.
export const IMAGE: u8 = 1;
export const AUDIO: u8 = 2;
export const FILE: u8 = 4;
/** A message of the assistant. */
export const ANSWER: u8 = 8;
/** What else only a model makes, such as a call of a tool. */
export const MADE: u8 = 16;
/** Either of the two: the conversation goes on. */
export const EARLIER: u8 = ANSWER | MADE;
export const MEDIA: u8 = IMAGE | AUDIO | FILE;
/** Of these, what the type of a part tells. */
export const BY_TYPE: u8 = MEDIA | MADE;

const types: StaticArray<Name> = [
  new Name('image_url', <Field>IMAGE),
  new Name('input_image', <Field>IMAGE),
  new Name('image', <Field>IMAGE),
  new Name('computer_screenshot', <Field>IMAGE),
  new Name('input_audio', <Field>AUDIO),
  new Name('audio_url', <Field>AUDIO),
  new Name('audio', <Field>AUDIO),
  new Name('input_file', <Field>FILE),
  new Name('file', <Field>FILE),
  new Name('document', <Field>FILE),
  // Items of OpenAI's responses, which name no role.
  new Name('function_call', <Field>MADE),
  new Name('reasoning', <Field>MADE),
  new Name('custom_tool_call', <Field>MADE),
  new Name('item_reference', <Field>MADE),
  new Name('compaction', <Field>MADE),
  new Name('mcp_call', <Field>MADE),
  new Name('web_search_call', <Field>MADE),
  new Name('file_search_call', <Field>MADE),
  new Name('computer_call', <Field>MADE),
  new Name('code_interpreter_call', <Field>MADE),
  new Name('image_generation_call', <Field>MADE),
  new Name('local_shell_call', <Field>MADE),
  new Name('shell_call', <Field>MADE),
  new Name('apply_patch_call', <Field>MADE),
];
const roles: StaticArray<Name> = [new Name('assistant', <Field>ANSWER)];

/** What the value of a `type` or `role` tells, in the form that `fieldIn` takes. */
export function flagsOf(field: Field, value: usize, length: usize): u8 {
  if (length == 0 || length > 24) return 0;
  return <u8>find(field == Field.ROLE ? roles : types, value);
}
