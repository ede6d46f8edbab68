import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { messageOf } from '../../message-of.js';
import { ConfigError } from '../problem.js';
import { YamlSource } from './yaml-source.js';

/** No configuration is nearly as long; what is put in its place by mistake must not take the memory, nor minutes. */
const MOST_CHARACTERS = 8 * 1024 * 1024;

/** Reads a file as UTF-8 text, without a byte order mark; throws what the file system throws. */
export type ReadFile = (path: string) => string;

export const readFromDisk: ReadFile = (path) => textOf(readFileSync(path));

/** Bytes of a file as text, without a byte order mark. */
export function textOf(bytes: Uint8Array): string {
  // Node would put other characters in the place of what it cannot read.
  if (!isUtf8(bytes)) throw new Error('it is not UTF-8 text');
  return new TextDecoder().decode(bytes);
}

/** @throws {ConfigError} when a configuration file cannot be read or is not YAML */
export function readSource(file: string, readFile: ReadFile): YamlSource {
  let text: string;
  try {
    text = readFile(file);
    if (text.length > MOST_CHARACTERS)
      throw new Error(`it has more than ${MOST_CHARACTERS} characters, as no configuration has`);
  } catch (error) {
    const problem = { file, line: 1, column: 1, path: '', message: `cannot be read: ${messageOf(error)}` };
    throw new ConfigError('WARDROP_CONFIG_UNREADABLE', [problem]);
  }
  return new YamlSource(text, file);
}
