/** What a form holds, by a reader that has it whole and takes it apart with regular expressions. */
export interface ReferenceForm {
  /** Parts before the end, in order. */
  readonly parts: readonly ReferencePart[];
}

export interface ReferencePart {
  readonly name: string;
  readonly isFile: boolean;
  /** Media type of the part, in lower case; '' if it has none. */
  readonly type: string;
  /** Where its content begins. */
  readonly start: number;
  readonly content: Buffer;
}

const control = '\\x00-\\x08\\x0a-\\x1f';
const token = '[^\\x00-\\x20;"\\\\][^\\x00-\\x20;"\\\\]*';
const text = `"(?:[^${control}"\\\\]|\\\\[^${control}])*"`;
const parameter = `[ \\t]*;[ \\t]*([^\\x00-\\x20;"=]*)=(${text}|${token})`;
const disposition = new RegExp(`^[ \\t]*form-data(?:${parameter})*[ \\t]*(?:;[ \\t]*)?$`, 'i');
const headerName = '[^\\x00-\\x20\\x7f-\\xff:]';
const header = new RegExp(`^(?!-)(${headerName}+):([^${control}]*)$`);

/** A complete form without anything in it that readers of forms disagree about; undefined for any other bytes. */
export function readForm(bytes: Uint8Array, boundary: string): ReferenceForm | undefined {
  const whole = `\r\n${Buffer.from(bytes).toString('latin1')}`;
  const delimiter = `\r\n--${boundary}`;
  const parts: ReferencePart[] = [];
  let at = whole.indexOf(delimiter);
  while (at >= 0) {
    at += delimiter.length;
    if (whole.startsWith('--', at)) return { parts };
    const next = whole.indexOf(delimiter, at);
    const headersEnd = whole.indexOf('\r\n\r\n', at + 2);
    if (!whole.startsWith('\r\n', at) || next < 0 || headersEnd < 0 || headersEnd + 4 > next)
      return undefined;
    const part = readHeaders(whole.slice(at + 2, headersEnd).split('\r\n'));
    if (!part) return undefined;
    const start = headersEnd + 4;
    parts.push({ ...part, start: start - 2, content: Buffer.from(whole.slice(start, next), 'latin1') });
    at = next;
  }
  return undefined;
}

function readHeaders(lines: readonly string[]): Pick<ReferencePart, 'name' | 'isFile' | 'type'> | undefined {
  const headers = lines.map((line) => header.exec(line));
  if (headers.includes(null)) return undefined;
  const valuesOf = (name: string) =>
    headers.filter((each) => each![1]!.toLowerCase() === name).map((each) => each![2]!);
  const firstWord = (value: string) => /^[ \t]*([^ \t;]*)/.exec(value)![1]!.toLowerCase();
  const dispositions = valuesOf('content-disposition');
  if (dispositions.length !== 1 || !disposition.test(dispositions[0]!)) return undefined;
  const parameters = [...dispositions[0]!.matchAll(new RegExp(parameter, 'g'))].map(
    ([, name, value]): [string, string] => [name!.toLowerCase(), value!],
  );
  const names = parameters.filter(([name]) => name === 'name');
  if (names.length !== 1 || parameters.some(([name]) => name.startsWith('name*'))) return undefined;
  if (/\\[^"\\]/.test(names[0]![1].replaceAll('\\\\', '')) && names[0]![1].startsWith('"')) return undefined;
  const name = unquoted(names[0]![1]);
  const isFile = parameters.some(([each]) => each === 'filename' || each.startsWith('filename*'));
  const encoded = valuesOf('content-transfer-encoding').some(
    (value) => !['7bit', '8bit', 'binary'].includes(firstWord(value)),
  );
  if (encoded && !isFile && known.has(name)) return undefined;
  return { name, isFile, type: firstWord(valuesOf('content-type').at(-1) ?? '') };
}

function unquoted(value: string): string {
  return value.startsWith('"') ? value.slice(1, -1).replace(/\\(.)/g, '$1') : value;
}

/** Fields that are looked for. */
export const known: ReadonlySet<string> = new Set([
  ...['model', 'prompt_cache_key', 'conversation', 'session_id', 'safety_identifier', 'user'],
  ...['service_tier', 'stream', 'prompt'],
]);

/** Last text of a field; undefined where it is not there, or a file. */
export function textOf(form: ReferenceForm, name: string): Buffer | undefined {
  const last = form.parts.filter((part) => part.name === name).at(-1);
  return last && !last.isFile ? last.content : undefined;
}
