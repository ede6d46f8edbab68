import { partModule } from '../../simulator/filter-host/build.js';
import { known, type ReferenceForm, textOf } from './form-reference.js';

type Exports = Record<string, (...args: number[]) => number> & { readonly memory: WebAssembly.Memory };
type Enum = Record<string, { readonly value: number }>;

/** What is found in a form. */
export interface FoundForm {
  /** In hex, the first 256 bytes. */
  readonly texts: Readonly<Record<string, string | undefined>>;
  readonly stream: boolean | undefined;
  readonly prompt: { readonly start: number; readonly length: number } | undefined;
  readonly image: boolean;
  readonly audio: boolean;
  readonly file: boolean;
}

export interface FormOutcome {
  readonly complete: boolean;
  readonly broken: boolean;
  readonly atFile: boolean;
  readonly found: FoundForm;
}

const STATE = 65_536;
const TYPE = 2 * 65_536;
const INPUT = 3 * 65_536;
const TEXT_LIMIT = 256;
const texts = [...known].filter((name) => name !== 'stream' && name !== 'prompt');
const truths = ['true', '1', 'on', 'yes', 't', 'y'];

/** The filter's reader of forms as a module of its own. */
export class FormScanner {
  readonly #exports = new WebAssembly.Instance(
    partModule('form', 'body/form.ts', 'body/boundary.ts', 'body/fields.ts', 'body/found.ts'),
    { env: { abort: () => {} } },
  ).exports as unknown as Exports & Enum;
  readonly #memory: Buffer;

  constructor() {
    this.#exports.memory.grow(8);
    this.#memory = Buffer.from(this.#exports.memory.buffer);
  }

  /** Whether the content type is that of a form, and says how its parts are told apart. */
  accepts(type: string): boolean {
    const bytes = Buffer.from(type, 'latin1');
    bytes.copy(this.#memory, TYPE);
    const { isFormType, findBoundary } = this.#exports;
    return isFormType!(TYPE, bytes.length) !== 0 && findBoundary!(TYPE, bytes.length) !== 0;
  }

  /** Reads a form, whose type has just been accepted, in pieces of these sizes and a last one of the rest. */
  read(bytes: Uint8Array, sizes: Iterable<number> = [], options: { headOnly?: boolean } = {}): FormOutcome {
    const form = this.#exports;
    form.startForm!(STATE, 0);
    // What follows is read from its beginning, as when a form turns out to be too long.
    if (options.headOnly) form.restartAtHead!(STATE);
    let at = 0;
    for (const size of sizes) {
      this.#scan(bytes.subarray(at, at + size));
      at = Math.min(at + size, bytes.length);
    }
    this.#scan(bytes.subarray(at));
    return {
      complete: form.isCompleteForm!(STATE) !== 0,
      broken: form.isBrokenForm!(STATE) !== 0,
      atFile: form.isAtFile!(STATE) !== 0,
      found: this.#found(),
    };
  }

  #scan(piece: Uint8Array): void {
    this.#memory.set(piece, INPUT);
    // What follows a piece in memory is not part of it.
    this.#memory.fill('\r\n--', INPUT + piece.length, INPUT + piece.length + 32);
    this.#exports.scanForm!(STATE, INPUT, piece.length);
  }

  #found(): FoundForm {
    const form = this.#exports;
    const field = (name: string) => form[`Field.${name.toUpperCase()}`]!.value;
    const kind = (name: string) => form.kindOf!(STATE, field(name));
    const isText = (name: string) => kind(name) === form['Kind.TEXT']!.value;
    const text = (name: string) => {
      if (!isText(name)) return undefined;
      const at = form.textOf!(STATE, field(name));
      const length = form.lengthOf!(STATE, field(name));
      return this.#memory.toString('hex', at, at + Math.min(length, TEXT_LIMIT));
    };
    const stream = kind('stream');
    const prompt = field('prompt');
    const hold = (flag: string) => (form.messagesHold!(STATE) & form[flag]!.value) !== 0;
    return {
      texts: Object.fromEntries(texts.map((name) => [name, text(name)])),
      stream:
        stream === form['Kind.TRUE']!.value ? true : stream === form['Kind.FALSE']!.value ? false : undefined,
      prompt: isText('prompt')
        ? { start: form.startOf!(STATE, prompt), length: form.lengthOf!(STATE, prompt) }
        : undefined,
      image: hold('IMAGE'),
      audio: hold('AUDIO'),
      file: hold('FILE'),
    };
  }
}

/** What is to be found in a form. */
export function expectedOf(form: ReferenceForm): FoundForm {
  const stream = textOf(form, 'stream')?.toString('latin1').toLowerCase();
  const prompt = form.parts.filter((part) => part.name === 'prompt').at(-1);
  const files = form.parts.filter((part) => part.isFile).map(({ type }) => type);
  const isImage = (type: string) => type.startsWith('image/');
  const isAudio = (type: string) => type.startsWith('audio/');
  return {
    texts: Object.fromEntries(
      texts.map((name) => [name, textOf(form, name)?.subarray(0, TEXT_LIMIT).toString('hex')]),
    ),
    stream: stream === undefined ? undefined : truths.includes(stream),
    prompt: prompt && !prompt.isFile ? { start: prompt.start, length: prompt.content.length } : undefined,
    image: files.some(isImage),
    audio: files.some(isAudio),
    file: files.some((type) => !isImage(type) && !isAudio(type)),
  };
}
