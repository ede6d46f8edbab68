import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { partModule } from '../../simulator/filter-host/build.js';

type Exports = Record<string, (...args: number[]) => number> & { readonly memory: WebAssembly.Memory };
type Enum = Record<string, { readonly value: number }>;

const scanner = new WebAssembly.Instance(
  partModule('scan', 'body/scan.ts', 'body/fields.ts', 'body/found.ts'),
  {
    env: { abort: () => {} },
  },
).exports as unknown as Exports & Enum;
scanner.memory.grow(64);
const STATE = 65536;
const INPUT = 3 * 65536;

const utf8 = new TextEncoder();
const field = (name: string) => scanner[`Field.${name}`]!.value;
const kinds = ['ABSENT', 'TEXT', 'NUMBER', 'TRUE', 'FALSE', 'OTHER'].map(
  (name) => [scanner[`Kind.${name}`]!.value, name] as const,
);
const kindNames = new Map(kinds);
const flag = (name: string) => scanner[name]!.value;

/** What the scanner is to find, in the words of the test. */
interface Found {
  readonly complete: boolean;
  readonly texts: Record<string, string | undefined>;
  readonly numbers: Record<string, number | undefined>;
  readonly stream: boolean | undefined;
  readonly tools: boolean;
  readonly image: boolean;
  readonly audio: boolean;
  readonly file: boolean;
  readonly answer: boolean;
  readonly made: boolean;
}

const texts: Record<string, string> = {
  model: 'MODEL',
  prompt_cache_key: 'PROMPT_CACHE_KEY',
  conversation: 'CONVERSATION',
  user_id: 'USER_ID',
  session_id: 'SESSION_ID',
  safety_identifier: 'SAFETY_IDENTIFIER',
  user: 'USER',
  service_tier: 'SERVICE_TIER',
};
const numbers: Record<string, string> = {
  max_tokens: 'MAX_TOKENS',
  max_completion_tokens: 'MAX_COMPLETION_TOKENS',
  max_output_tokens: 'MAX_OUTPUT_TOKENS',
  priority: 'PRIORITY',
};

/** Scans the bytes in pieces that end at the cuts. */
function scan(bytes: Uint8Array, cuts: readonly number[] = []): number {
  const state = scanner.startScan!(STATE);
  const ends = [...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  let start = 0;
  for (const end of ends) {
    // Every piece lies at the end of a page, so that reading past it would be seen as reading zeros.
    const memory = new Uint8Array(scanner.memory.buffer);
    memory.fill(0, INPUT, INPUT + bytes.length + 64);
    memory.set(bytes.subarray(start, end), INPUT);
    scanner.scan!(state, INPUT, end - start);
    start = end;
  }
  return state;
}

function found(bytes: Uint8Array, cuts: readonly number[] = []): Found {
  const state = scan(bytes, cuts);
  const kind = (name: string) => kindNames.get(scanner.kindOf!(state, field(name)));
  const memory = new Uint8Array(scanner.memory.buffer);
  const text = (name: string) => {
    if (kind(name) !== 'TEXT') return undefined;
    const at = scanner.textOf!(state, field(name));
    return Buffer.from(memory.subarray(at, at + scanner.lengthOf!(state, field(name)))).toString('hex');
  };
  const number = (name: string) =>
    kind(name) === 'NUMBER' ? Number(scanner.numberOf!(state, field(name))) : undefined;
  const stream = kind('STREAM');
  const hold = scanner.messagesHold!(state);
  return {
    complete: scanner.isComplete!(state) !== 0,
    texts: Object.fromEntries(Object.entries(texts).map(([key, name]) => [key, text(name)])),
    numbers: Object.fromEntries(Object.entries(numbers).map(([key, name]) => [key, number(name)])),
    stream: stream === 'TRUE' ? true : stream === 'FALSE' ? false : undefined,
    tools: scanner.holdsTools!(state) !== 0,
    image: (hold & flag('IMAGE')) !== 0,
    audio: (hold & flag('AUDIO')) !== 0,
    file: (hold & flag('FILE')) !== 0,
    answer: (hold & flag('ANSWER')) !== 0,
    made: (hold & flag('MADE')) !== 0,
  };
}

/** The same by `JSON.parse`, which passes over no byte order mark; undefined when it refuses. */
function expected(json: string): Found | undefined {
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
    numbers: Object.fromEntries(Object.keys(numbers).map((key) => [key, plainNumber(own(key))])),
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

/** Numbers that are not written as digits alone may be missed, but never misread. */
function expectAgreement(result: Found, reference: Found): void {
  const told = Object.entries(result.numbers).filter(([, number]) => number !== undefined);
  expect(told.filter(([key, number]) => number !== reference.numbers[key])).toEqual([]);
  expect({ ...result, numbers: {} }).toEqual({ ...reference, numbers: {} });
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

function plainNumber(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

// --- Documents ---

const names = [
  ...Object.keys(texts),
  ...Object.keys(numbers),
  ...[
    'stream',
    'messages',
    'input',
    'prompt',
    'tools',
    'metadata',
    'id',
    'role',
    'type',
    'content',
    'output',
    'x',
    'models',
    '',
  ],
];
const shortText = fc.oneof(
  fc.constantFrom(
    'm',
    'assistant',
    'user',
    'image_url',
    'reasoning',
    'input_audio',
    'file',
    'text',
    '"',
    '\\',
    '\n',
    'é',
    '€',
    '🙂',
    '\ud800',
    '\udc00',
  ),
  fc.string({ unit: 'binary', maxLength: 6 }),
);

/** JSON text of a string, its characters spelled in any of the ways there are. */
function spelled(text: string, choices: readonly number[]): string {
  let at = 0;
  const units = Array.from({ length: text.length }, (_, index) => {
    const code = text.charCodeAt(index);
    const choice = choices[at++ % choices.length]!;
    const hex = `\\u${code.toString(16).padStart(4, '0')}`;
    const alone = code >= 0xd800 && code <= 0xdfff;
    if (choice === 0 || code < 0x20 || alone)
      return choice === 1 ? hex.toUpperCase().replace('\\U', '\\u') : hex;
    if (text[index] === '"' || text[index] === '\\') return `\\${text[index]}`;
    if (text[index] === '/' && choice === 1) return '\\/';
    return text[index];
  });
  return `"${units.join('')}"`;
}

const choices = fc.array(fc.nat(5), { minLength: 1, maxLength: 5 });
const space = fc.constantFrom('', '', '', ' ', '\n\t', '\r ');
const { json } = fc.letrec<{ json: string; value: string; object: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.tuple(shortText, choices).map(([text, how]) => spelled(text, how)),
    fc.constantFrom(
      'true',
      'false',
      'null',
      '0',
      '-0',
      '1',
      '17',
      '-3',
      '4096',
      '1.5',
      '1e3',
      '9007199254740991',
    ),
    tie('object'),
    fc
      .array(
        fc.tuple(space, tie('value'), space).map((parts) => parts.join('')),
        { maxLength: 3 },
      )
      .map((items) => `[${items.join(',')}]`),
  ),
  object: fc
    .array(fc.tuple(space, fc.constantFrom(...names), choices, space, tie('value'), space), { maxLength: 5 })
    .map(
      (entries) =>
        `{${entries.map(([a, key, how, b, value, c]) => `${a}${spelled(key, how)}${b}:${value}${c}`).join(',')}}`,
    ),
  json: fc
    .tuple(
      space,
      fc.oneof({ weight: 9, arbitrary: tie('object') }, { weight: 1, arbitrary: tie('value') }),
      space,
    )
    .map((parts) => parts.join('')),
}));
const cuts = fc.array(fc.nat(), { maxLength: 6 });

const message = fc.record({
  role: fc.constantFrom('user', 'assistant', 'system'),
  content: fc.oneof(
    fc.string({ maxLength: 60 }),
    fc.array(
      fc.record({
        type: fc.constantFrom('text', 'image_url', 'input_audio', 'document', 'reasoning'),
        text: fc.string(),
      }),
      {
        maxLength: 3,
      },
    ),
  ),
});
const part = fc.record({
  type: fc.constantFrom('input_text', 'input_image', 'input_file', 'computer_screenshot'),
});
const item = fc.record(
  {
    type: fc.constantFrom('message', 'function_call', 'function_call_output'),
    content: fc.array(part, { maxLength: 2 }),
    output: fc.oneof(fc.string(), part, fc.array(part, { maxLength: 2 })),
  },
  { requiredKeys: ['type'] },
);
const chat = fc.record(
  {
    model: shortText,
    messages: fc.array(message, { maxLength: 4 }),
    input: fc.array(item, { maxLength: 3 }),
    stream: fc.boolean(),
    tools: fc.array(fc.record({ type: fc.constant('function') }), { maxLength: 2 }),
    metadata: fc.record({ user_id: shortText }),
    conversation: fc.oneof(shortText, fc.record({ id: shortText })),
    max_tokens: fc.nat(),
    prompt_cache_key: shortText,
  },
  { requiredKeys: [] },
);

describe('the body scanner', () => {
  it('finds what JSON.parse finds in any document, cut into any pieces', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          json,
          chat.map((value) => JSON.stringify(value)),
        ),
        cuts,
        (text, at) => {
          expectAgreement(found(utf8.encode(text), at), expected(text)!);
        },
      ),
      { numRuns: 4000 },
    );
  });

  it('takes for complete what JSON.parse takes, and nothing else, after any change to a document', () => {
    const change = fc.record({
      at: fc.nat(),
      cut: fc.nat(3),
      insert: fc.oneof(
        fc.constantFrom(
          '',
          '"',
          '\\',
          '{',
          '}',
          '[',
          ']',
          ',',
          ':',
          '-',
          '0',
          '.',
          'e',
          't',
          ' ',
          '\u0001',
          '\u007f',
          '\ufeff',
        ),
        fc.string({ maxLength: 2 }),
      ),
    });
    fc.assert(
      fc.property(json, fc.array(change, { minLength: 1, maxLength: 3 }), cuts, (text, changes, at) => {
        let changed = text;
        for (const { at: place, cut, insert } of changes) {
          const start = place % (changed.length + 1);
          changed = changed.slice(0, start) + insert + changed.slice(start + cut);
        }
        // What cannot be written in UTF-8 is not the scanner's to judge.
        fc.pre(!/\p{Surrogate}/u.test(changed));
        const result = found(utf8.encode(changed), at);
        const reference = expected(changed);
        if (reference) expectAgreement(result, reference);
        else expect(result.complete).toBe(false);
      }),
      { numRuns: 6000 },
    );
  });

  it('agrees with JSON.parse on long texts with any escapes, right ones and wrong ones', () => {
    const piece = fc.oneof(
      {
        weight: 40,
        arbitrary: fc.constantFrom(...['a', 'é', '\\n', '\\"', '\\\\', '\\u00e9', '\\/', '\\t']),
      },
      { weight: 20, arbitrary: fc.nat(40).map((length) => 'text '.repeat(9).slice(0, length)) },
      { weight: 1, arbitrary: fc.constantFrom(...['"', '\\x', '\\u12g4', '\\u12', '\\', '\u0001', '\\\n']) },
    );
    fc.assert(
      fc.property(fc.array(piece, { size: 'max', maxLength: 60 }), cuts, (pieces, at) => {
        const text = `{"messages":"${pieces.join('')}","model":"m"}`;
        const result = found(utf8.encode(text), at);
        const reference = expected(text);
        if (reference) expectAgreement(result, reference);
        else expect(result.complete).toBe(false);
      }),
      { numRuns: 6000 },
    );
  });

  it('never traps and never calls random bytes complete that JSON.parse refuses', () => {
    const byte = fc.oneof(
      fc.integer({ min: 0, max: 255 }),
      fc.constantFrom(...'{}[]",:\\tfn0-1.eE '.split('').map((c) => c.charCodeAt(0))),
    );
    fc.assert(
      fc.property(fc.array(byte, { maxLength: 40 }), cuts, (bytes, at) => {
        const { complete } = found(Uint8Array.from(bytes), at);
        const text = String.fromCharCode(...bytes);
        expect(complete).toBe(expected(text) !== undefined);
      }),
      { numRuns: 4000 },
    );
  });

  it('knows only the keys of the body itself, not those of what is nested or quoted', () => {
    const decoys = [
      '{"x":{"model":"decoy"},"y":[{"model":"decoy"}],"z":"\\"model\\":\\"decoy\\"","model":"real"}',
      '{"model":"real","messages":[{"role":"user","content":"{\\"model\\":\\"decoy\\"}","model":"decoy"}]}',
      '{"mode":"decoy","model ":"decoy","Model":"decoy","model\\u0000":"decoy","model":"real"}',
      '{"model":"decoy","model":"real"}',
      '{"\\u006d\\u006Fdel":"re\\u0061l"}',
    ];
    for (const text of decoys)
      expect(found(utf8.encode(text)).texts.model).toBe(Buffer.from('real').toString('hex'));
    expect(found(utf8.encode('[{"model":"decoy"}]')).texts.model).toBeUndefined();
    for (const value of ['5', 'null', '{"a":1}', '["m"]', 'true']) {
      expect(found(utf8.encode(`{"model":"m","model":${value}}`)).texts.model).toBeUndefined();
    }
  });

  it('reads numbers that are digits alone', () => {
    const numbersOf = (text: string) =>
      found(utf8.encode(`{"max_tokens":${text}}`), [15, 16]).numbers.max_tokens;
    expect(['0', '7', '4096', '9007199254740991'].map(numbersOf)).toEqual([0, 7, 4096, 2 ** 53 - 1]);
    expect(['-1', '1.0', '1e3', '9007199254740992', '9'.repeat(5000), '"7"'].map(numbersOf)).toEqual(
      Array.from({ length: 6 }),
    );
  });

  it('measures the bytes of the prompt as they stand in the body', () => {
    const value = '[{"role":"user","content":"héllo\\n"}]';
    const bytes = utf8.encode(`{"messages":[],"prompt":  "abc" ,"messages":\n${value} }`);
    const state = scan(bytes, [5, 30, 40]);
    expect(scanner.lengthOf!(state, field('MESSAGES'))).toBe(utf8.encode(value).length);
    expect(scanner.lengthOf!(state, field('PROMPT'))).toBe(5);
  });

  it('measures characters alike, whether they are spelled as escapes or not, however they are cut', () => {
    const word = fc.constantFrom('плита', '你好', 'é', '🙂🙂', '"', '\n', 'plain words ', 'x'.repeat(70));
    const words = fc.array(word, { maxLength: 40 }).map((all) => all.join(''));
    const measured = (json: string, at: readonly number[]) => {
      const state = scan(utf8.encode(json), at);
      const lengths = ['MESSAGES', 'INPUT', 'SYSTEM'].map((name) => scanner.lengthOf!(state, field(name)));
      return [...lengths, scanner.promptBytes!(state)];
    };
    fc.assert(
      fc.property(words, words, words, cuts, (system, text, file, at) => {
        const part = { type: 'document', text: file };
        const messages = [{ role: 'user', content: [{ type: 'text', text }, part] }];
        const json = JSON.stringify({ system, messages, input: text });
        const escaped = json.replace(
          /[^\0-\x7f]/g,
          (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
        );
        expect(JSON.parse(escaped)).toEqual(JSON.parse(json));
        expect(measured(escaped, at)).toEqual(measured(json, []));
      }),
      { numRuns: 2000 },
    );
  });

  it('fails on more than 1024 containers within each other, and on nothing less deep', () => {
    const nested = (depth: number) => utf8.encode(`${'[{"a":'.repeat(depth / 2)}1${'}]'.repeat(depth / 2)}`);
    expect(found(nested(1024)).complete).toBe(true);
    expect(found(nested(1026)).complete).toBe(false);
    expect(found(utf8.encode('['.repeat(200_000))).complete).toBe(false);
  });

  it('keeps the beginning of a long text and counts the rest', () => {
    const long = 'é'.repeat(1000);
    const state = scan(utf8.encode(`{"model":"${long}","user":"u"}`), [100, 1000]);
    expect(scanner.lengthOf!(state, field('MODEL'))).toBe(2000);
    const at = scanner.textOf!(state, field('MODEL'));
    const kept = new Uint8Array(scanner.memory.buffer).subarray(at, at + 256);
    expect(Buffer.from(kept).toString()).toBe(long.slice(0, 128));
    expect(scanner.lengthOf!(state, field('USER'))).toBe(1);
  });
});
