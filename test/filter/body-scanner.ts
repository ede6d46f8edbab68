import { partModule } from '../../simulator/filter-host/build.js';

type Exports = Record<string, (...args: number[]) => number> & { readonly memory: WebAssembly.Memory };
type Enum = Record<string, { readonly value: number }>;

/** The filter's scanner of bodies as a module of its own. */
export const scanner = new WebAssembly.Instance(
  partModule('scan', 'body/scan.ts', 'body/fields.ts', 'body/found.ts'),
  {
    env: { abort: () => {} },
  },
).exports as unknown as Exports & Enum;
scanner.memory.grow(64);
const STATE = 65536;
const INPUT = 3 * 65536;

export const field = (name: string) => scanner[`Field.${name}`]!.value;
const kinds = ['ABSENT', 'TEXT', 'NUMBER', 'TRUE', 'FALSE', 'OTHER'].map(
  (name) => [scanner[`Kind.${name}`]!.value, name] as const,
);
const kindNames = new Map(kinds);
const flag = (name: string) => scanner[name]!.value;

/** What the scanner is to find, in the words of the test. */
export interface Found {
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

/** Keys of a body whose values are found, and the names of their fields. */
export const texts: Record<string, string> = {
  model: 'MODEL',
  prompt_cache_key: 'PROMPT_CACHE_KEY',
  conversation: 'CONVERSATION',
  user_id: 'USER_ID',
  session_id: 'SESSION_ID',
  safety_identifier: 'SAFETY_IDENTIFIER',
  user: 'USER',
  service_tier: 'SERVICE_TIER',
};
export const numbers: Record<string, string> = {
  max_tokens: 'MAX_TOKENS',
  max_completion_tokens: 'MAX_COMPLETION_TOKENS',
  max_output_tokens: 'MAX_OUTPUT_TOKENS',
  priority: 'PRIORITY',
};

/** Scans the bytes in pieces that end at the cuts. */
export function scan(bytes: Uint8Array, cuts: readonly number[] = []): number {
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

/** What is found in a body that comes in these pieces. */
export function found(bytes: Uint8Array, cuts: readonly number[] = []): Found {
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
