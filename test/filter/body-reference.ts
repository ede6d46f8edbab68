import { type Found, numbers, texts } from './body-scanner.js';

/** The same by `JSON.parse`, which passes over no byte order mark; undefined when it refuses. */
export function expected(json: string): Found | undefined {
  let value: unknown;
  try {
    value = JSON.parse(json.replace(/^\ufeff/, ''));
  } catch {
    return undefined;
  }
  const top = isObject(value) ? value : {};
  const own = (key: string) => (Object.hasOwn(top, key) ? top[key] : undefined);
  const conversation = own('conversation');
  const metadata = own('metadata');
  const textValues: Record<string, unknown> = {
    ...Object.fromEntries(Object.keys(texts).map((key) => [key, own(key)])),
    conversation: isObject(conversation) ? conversation.id : conversation,
    user_id: isObject(metadata) ? metadata.user_id : undefined,
  };
  const tools = own('tools');
  const parts = [own('messages'), own('input')].flatMap((list) => itemsOf(list));
  const type = (...names: string[]) => parts.some((part) => names.includes(part.type as string));
  return {
    complete: true,
    texts: Object.fromEntries(
      Object.entries(textValues).map(([key, text]) => [
        key,
        typeof text === 'string' ? encoded(text) : undefined,
      ]),
    ),
    numbers: Object.fromEntries(
      Object.keys(numbers).map((key) => [key, numberIn(own(key), key !== 'priority')]),
    ),
    stream: typeof own('stream') === 'boolean' ? (own('stream') as boolean) : undefined,
    tools: Array.isArray(tools) && tools.length > 0,
    image: type('image_url', 'input_image', 'image', 'computer_screenshot'),
    audio: type('input_audio', 'audio_url', 'audio'),
    file: type('input_file', 'file', 'document'),
    made: type('function_call', 'reasoning'),
    answer: [own('messages'), own('input')].some(
      (list) => Array.isArray(list) && list.some((item) => isObject(item) && item.role === 'assistant'),
    ),
  };
}

type JsonObject = Record<string, unknown>;

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Messages and the parts within them. */
function itemsOf(list: unknown): JsonObject[] {
  if (!Array.isArray(list)) return [];
  return list
    .filter(isObject)
    .flatMap((item) => [
      item,
      ...itemsOf(item.content),
      ...itemsOf(isObject(item.output) ? [item.output] : item.output),
    ]);
}

/** UTF-8 in hex, halves of surrogate pairs written like characters. */
function encoded(text: string): string {
  return Array.from(text, (character) => {
    const code = character.codePointAt(0)!;
    if (code < 0xd800 || code > 0xdfff) return Buffer.from(character).toString('hex');
    return Buffer.from([0xe0 | (code >> 12), 0x80 | ((code >> 6) & 0x3f), 0x80 | (code & 0x3f)]).toString(
      'hex',
    );
  }).join('');
}

/** The whole part of a number that is not negative. */
function numberIn(value: unknown, isReadFromText: boolean): number | undefined {
  const isText = isReadFromText && typeof value === 'string' && /^\d{1,32}$/.test(value);
  if (!isText && typeof value !== 'number') return undefined;
  const number = Number(value);
  if (number < 0 || Object.is(number, -0)) return undefined;
  return Math.min(Math.floor(number), Number.MAX_SAFE_INTEGER);
}
