import { partModule } from '../../simulator/filter-host/build.js';
import type { Random } from './random.js';

type Exports = Record<string, (...args: number[]) => number> & { readonly memory: WebAssembly.Memory };
type Enum = Record<string, { readonly value: number }>;

const STATE = 65_536;
const INPUT = 3 * 65_536;
const TEXT_LIMIT = 256;
/** Surrogates without their other half. */
const halves = /\p{Surrogate}/u;

/** Texts to begin with; mutations make the others. */
const seeds = [
  '{"model":"llama-70b","messages":[{"role":"user","content":"hi"}],"stream":true,"max_tokens":32}',
  '{"messages":[{"role":"assistant","content":[{"type":"text","text":"a\\"b\\\\"}]}],"model":"m\\u0061","user":"u"}',
  '{"mod\\u0065l":"a","model":"b","prompt_cache_key":"k","metadata":{"user_id":"x","model":"no"},"stream":false}',
  '{"input":"text","model":null,"conversation":{"id":"c-1"},"priority":7,"tools":[{"type":"function"}]}',
  ' [ 1 , -2.5e+3 , true , null , {"model":"decoy"} ] ',
  '{"model":"é€🙂","session_id":"\\ud83d\\ude42","safety_identifier":"","service_tier":"flex"}',
  '{"a":{"b":{"c":[[[{"model":"deep"}]]]}},"model":"top","max_tokens":9007199254740991}',
  '{"max_completion_tokens":17,"max_tokens":5,"max_output_tokens":300,"model":"m","max_tokens":40}',
  '{}',
  '"model"',
  '0',
];
const pieces = [
  '"',
  '\\',
  '{',
  '}',
  '[',
  ']',
  ',',
  ':',
  ' ',
  '\n',
  '0',
  '-',
  '1e5',
  '1.25e2',
  '"40"',
  '.',
  'true',
  'null',
  '\\u00e9',
  '\ufeff',
];
const words = [
  '"model":',
  '"model":"x",',
  '"user":"y"',
  '"stream":true',
  '"prompt_cache_key":"z",',
  '"max_output_tokens":9,',
  '\\ud800',
  '\u0001',
];
/** Fields that say how many tokens an answer may have. */
const limits = ['max_tokens', 'max_completion_tokens', 'max_output_tokens'];
/** What long texts are made of. */
const escapes = ['\\n', '\\"', '\\\\', '\\u00e9', '\\t', '\\/', 'é', 'a', 'plain text '];

/**
 * Compares what the scanner finds in mutated JSON, cut anywhere, with what `JSON.parse` finds; throws at the first
 * difference. Resolves to the number of inputs that were JSON.
 */
export function fuzzScanner(inputs: number, random: Random): number {
  const scanner = new WebAssembly.Instance(
    partModule('scan', 'body/scan.ts', 'body/fields.ts', 'body/found.ts'),
    {
      env: { abort: () => {} },
    },
  ).exports as unknown as Exports & Enum;
  scanner.memory.grow(8);
  const memory = Buffer.from(scanner.memory.buffer);
  const field = (name: string) => scanner[`Field.${name}`]!.value;
  const kind = (name: string) => scanner[`Kind.${name}`]!.value;
  const [model, key, user, stream] = ['MODEL', 'PROMPT_CACHE_KEY', 'USER', 'STREAM'].map(field);
  const [text, isTrue, isFalse] = ['TEXT', 'TRUE', 'FALSE'].map(kind);
  const textOf = (place: number) => {
    if (scanner.kindOf!(STATE, place) !== text) return undefined;
    const at = scanner.textOf!(STATE, place);
    return memory.subarray(at, at + Math.min(scanner.lengthOf!(STATE, place), TEXT_LIMIT));
  };
  let valid = 0;
  for (let i = 0; i < inputs; i++) {
    const json = mutated(random);
    const bytes = Buffer.from(json);
    scan(scanner, memory, bytes, random);
    const value = parsed(json);
    const differs = (what: string) =>
      new Error(`the scanner and JSON.parse differ in ${what}: ${JSON.stringify(json)}`);
    if ((scanner.isComplete!(STATE) !== 0) !== (value !== undefined)) throw differs('whether it is JSON');
    if (value === undefined) continue;
    valid++;
    const own = (name: string) =>
      isObject(value.value) && Object.hasOwn(value.value, name) ? value.value[name] : undefined;
    if (!isSame(textOf(model!), own('model'))) throw differs('the model');
    if (!isSame(textOf(key!), own('prompt_cache_key'))) throw differs('the key');
    if (!isSame(textOf(user!), own('user'))) throw differs('the user');
    const flag = scanner.kindOf!(STATE, stream!);
    if ((flag === isTrue) !== (own('stream') === true)) throw differs('stream');
    if ((flag === isFalse) !== (own('stream') === false)) throw differs('stream');
    const limit = Number(scanner.mostOutputTokens!(STATE));
    const most = Math.max(...limits.map((name) => limitIn(own(name))));
    // Of more digits than a number holds, `JSON.parse` may round to the next whole number what is less.
    const isRounded = /[\d.]{16}/.test(json);
    const least = isRounded
      ? Math.max(...limits.map((name) => limitIn(own(name), 1 - Number.EPSILON)))
      : most;
    if (limit > most * (1 + Number.EPSILON) || limit < least * (1 - Number.EPSILON))
      throw differs('the limit');
  }
  return valid;
}

/** The whole part of so many times a number, also of one in a text; 0 where there is none. */
function limitIn(value: unknown, times = 1): number {
  if (typeof value === 'string' && !/^\d{1,32}$/.test(value)) return 0;
  if (typeof value !== 'string' && typeof value !== 'number') return 0;
  return Math.max(0, Math.min(Math.floor(times * Number(value)), Number.MAX_SAFE_INTEGER));
}

function mutated(random: Random): string {
  let json = random.oneOf(seeds);
  for (let changes = random.below(4); changes > 0; changes--) {
    const at = random.below(json.length + 1);
    const to = Math.min(json.length, at + random.below(8));
    switch (random.below(7)) {
      case 0:
        json = json.slice(0, at) + json.slice(to);
        break;
      case 1:
        json = json.slice(0, at) + random.oneOf(pieces) + json.slice(at);
        break;
      case 2:
        json = json.slice(0, at) + random.oneOf(words) + json.slice(at);
        break;
      case 5:
        json = json.slice(0, at) + longText(random) + json.slice(at);
        break;
      case 3:
        json = json.slice(0, at) + json.slice(at, to).repeat(1 + random.below(4)) + json.slice(to);
        break;
      case 4:
        json = json.slice(0, at) + random.oneOf(seeds).slice(random.below(20));
        break;
      default:
        json = json.slice(0, at) + String.fromCharCode(random.below(128)) + json.slice(at + 1);
    }
  }
  return halves.test(json) ? Buffer.from(json).toString() : json;
}

function longText(random: Random): string {
  return Array.from({ length: random.below(60) }, () => random.oneOf(escapes)).join('');
}

/** Scans the bytes in pieces that end anywhere. */
function scan(scanner: Exports, memory: Buffer, bytes: Buffer, random: Random): void {
  scanner.startScan!(STATE);
  let start = 0;
  while (start < bytes.length) {
    const rest = bytes.length - start;
    const size = random.below(3) === 0 ? rest : 1 + random.below(rest);
    bytes.copy(memory, INPUT, start, start + size);
    // What follows a piece in memory is not part of it.
    memory.fill(0x22, INPUT + size, INPUT + size + 16);
    scanner.scan!(STATE, INPUT, size);
    start += size;
  }
}

/** A byte order mark is passed over, as engines do. */
function parsed(json: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(json.replace(/^\ufeff/, '')) };
  } catch {
    return undefined;
  }
}

function isSame(found: Buffer | undefined, value: unknown): boolean {
  if (typeof value !== 'string') return found === undefined;
  // Halves of characters have no form in UTF-8.
  if (halves.test(value)) return found !== undefined;
  return found?.equals(Buffer.from(value).subarray(0, TEXT_LIMIT)) === true;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
