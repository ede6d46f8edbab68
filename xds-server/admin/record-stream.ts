import type { Response } from 'express';
import { RecordingOutput } from '../control/recording/recording-output.js';
import type { ShownServer } from './shown-server.js';

/** Sends a recording until the reader leaves. */
export function streamRecording(server: Pick<ShownServer, 'recorders'>, response: Response): void {
  const output = new RecordingOutput(response);
  response.type('application/x-ndjson');
  response.flushHeaders();
  const stop = server.recorders.add((recorded) => output.write(recorded));
  response.once('close', stop);
}
