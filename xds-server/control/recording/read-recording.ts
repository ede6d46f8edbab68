import { createReadStream } from 'node:fs';
import { createGunzip } from 'node:zlib';
import { WardropError } from '../../errors.js';
import type { Recorded } from './recording.js';
import { recordingFiles } from './recording-names.js';
import { RecordingReader } from './recording-reader.js';

/** No line of a recording is nearly as long; what is no recording must not fill the memory. */
const MOST_LINE_CHARACTERS = 128 * 1024 * 1024;

/**
 * What a file written by `wardrop record` holds, or the files of `wardrop serve --record` with this name, in their order.
 *
 * @throws {WardropError} WARDROP_RECORDING_INVALID
 */
export async function* readRecording(name: string): AsyncGenerator<Recorded> {
  for (const file of await recordingFiles(name)) yield* readFile(file);
}

async function* readFile(file: string): AsyncGenerator<Recorded> {
  const reader = new RecordingReader();
  const input = createReadStream(file);
  const text = input.pipe(createGunzip()).setEncoding('utf8');
  input.on('error', (error) => text.destroy(error));
  try {
    for await (const line of linesOf(text)) {
      const recorded = reader.read(line);
      if (recorded !== undefined) yield recorded;
    }
  } catch (error) {
    // A file that was never closed ends anywhere, maybe within a line, which is left out then.
    if ((error as NodeJS.ErrnoException).code === 'Z_BUF_ERROR') return;
    throw asInvalid(error, file);
  }
}

/** Only line feeds end a line: JSON may hold what else passes for an end elsewhere. */
async function* linesOf(text: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of text) {
    const end = chunk.lastIndexOf('\n');
    if (end < 0) rest += chunk;
    else {
      yield* (rest + chunk.slice(0, end)).split('\n');
      rest = chunk.slice(end + 1);
    }
    if (rest.length > MOST_LINE_CHARACTERS)
      throw new Error(`holds a line of more than ${MOST_LINE_CHARACTERS} characters`);
  }
  if (rest !== '') yield rest;
}

function asInvalid(error: unknown, file: string): WardropError {
  const { message, code } = error as NodeJS.ErrnoException;
  const why = code === 'Z_DATA_ERROR' ? `is damaged, or no file of wardrop record (${message})` : message;
  return new WardropError('WARDROP_RECORDING_INVALID', `${file}: ${why}`, { cause: error });
}
