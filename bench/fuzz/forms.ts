import { isDeepStrictEqual } from 'node:util';
import { readForm } from '../../test/filter/form-reference.js';
import { expectedOf, FormScanner } from '../../test/filter/form-scanner.js';
import type { Random } from './random.js';

const BOUNDARY = 'X-b';

/** Forms to begin with; mutations make the others. */
const seeds = [
  part('name="model"', 'whisper') + part('name="file"; filename="a.wav"', 'RIFF\r\n--X', 'audio/wav') + end(),
  part('name="file"; filename="\\"a\\".png"', '\x00\r\n\r\n', 'image/png') + part('name=model', 'a') + end(),
  part('name="model"', 'first') + part('name="user"', 'u') + part('name="model"', '') + end(),
  part('name="stream"', 'True') +
    part('name="prompt"', 'names') +
    part('filename=x; name="user"', '') +
    end(),
  `preamble\r\n${part('name="x"', '')}${end()}${part('name="model"', 'decoy')}`,
  end(),
];
const pieces = [
  ...['\r\n', '\r', '\n', '-', '--', ';', '"', '\\', '=', ':', ' ', '\t', '\0', '*', 'é'],
  ...[`--${BOUNDARY}`, `\r\n--${BOUNDARY}`, `--${BOUNDARY}--`, '\r\n\r\n', 'name="model"', '; filename="x"'],
  ...['Content-Disposition: form-data; name="model"\r\n', 'Content-Transfer-Encoding: base64\r\n', 'm'],
];

function part(parameters: string, content: string, type?: string): string {
  const disposition = `Content-Disposition: form-data; ${parameters}`;
  const headers = type === undefined ? disposition : `${disposition}\r\nContent-Type: ${type}`;
  return `--${BOUNDARY}\r\n${headers}\r\n\r\n${content}\r\n`;
}

function end(): string {
  return `--${BOUNDARY}--\r\n`;
}

/**
 * Compares what is found in mutated forms, cut anywhere, with what a reader finds that has them whole; throws at the
 * first difference. Resolves to the number of inputs that were forms.
 */
export function fuzzForms(inputs: number, random: Random): number {
  const scanner = new FormScanner();
  if (!scanner.accepts(`multipart/form-data; boundary=${BOUNDARY}`))
    throw new Error('the boundary is refused');
  let valid = 0;
  for (let i = 0; i < inputs; i++) {
    const form = mutated(random);
    const bytes = Buffer.from(form, 'latin1');
    const sizes = Array.from({ length: random.below(4) }, () => random.below(bytes.length + 1));
    const { complete, found } = scanner.read(bytes, sizes);
    const reference = readForm(bytes, BOUNDARY);
    const differs = (what: string) => new Error(`the readers differ in ${what}: ${JSON.stringify(form)}`);
    if (complete !== (reference !== undefined)) throw differs('whether it is a form');
    if (!reference) continue;
    valid++;
    if (!isDeepStrictEqual(found, expectedOf(reference))) throw differs('what it holds');
  }
  return valid;
}

function mutated(random: Random): string {
  let form = random.oneOf(seeds);
  for (let changes = random.below(4); changes > 0; changes--) {
    const at = random.below(form.length + 1);
    const to = Math.min(form.length, at + random.below(8));
    switch (random.below(5)) {
      case 0:
        form = form.slice(0, at) + form.slice(to);
        break;
      case 1:
        form = form.slice(0, at) + random.oneOf(pieces) + form.slice(at);
        break;
      case 2:
        form = form.slice(0, at) + form.slice(at, to).repeat(1 + random.below(4)) + form.slice(to);
        break;
      case 3:
        form = form.slice(0, at) + random.oneOf(seeds).slice(random.below(60));
        break;
      default:
        form = form.slice(0, at) + String.fromCharCode(random.below(256)) + form.slice(at + 1);
    }
  }
  return form;
}
