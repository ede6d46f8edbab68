import type { Response } from 'express';
import { RecordingWriter } from '../control/recording/recording.js';
import type { ShownServer } from './shown-server.js';

/** A reader that is behind by more is cut off: a recording must not cost the control server its memory. */
const MOST_BUFFERED_BYTES = 64 * 1024 * 1024;

/** Sends a recording until the reader leaves. */
export function streamRecording(server: Pick<ShownServer, 'recorders'>, response: Response): void {
  const writer = new RecordingWriter();
  response.type('application/x-ndjson');
  response.flushHeaders();
  const stop = server.recorders.add((recorded) => {
    response.write(writer.write(recorded));
    if (response.writableLength > MOST_BUFFERED_BYTES) response.destroy();
  });
  response.once('close', stop);
}
