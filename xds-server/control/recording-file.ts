import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { createGunzip } from 'node:zlib';
import { WardropError } from '../errors.js';
import { type Recorded, RecordingReader } from './recording.js';

/**
 * What a file written by `wardrop record` holds.
 *
 * @throws {WardropError} WARDROP_RECORDING_INVALID
 */
export async function* readRecording(file: string): AsyncGenerator<Recorded> {
  const reader = new RecordingReader();
  const input = createReadStream(file);
  const text = input.pipe(createGunzip());
  input.on('error', (error) => text.destroy(error));
  try {
    for await (const line of createInterface({ input: text })) {
      const recorded = reader.read(line);
      if (recorded !== undefined) yield recorded;
    }
  } catch (error) {
    if (error instanceof WardropError) throw error;
    const { message, code } = error as NodeJS.ErrnoException;
    const why = code === 'Z_DATA_ERROR' ? `is no file of wardrop record (${message})` : message;
    throw new WardropError('WARDROP_RECORDING_INVALID', `${file}: ${why}`, { cause: error });
  }
}
