import { type DestinationStream, destination } from 'pino';

/** What waits to be written, at most, before further lines are left out: as while nobody reads the other end of a pipe. */
const MOST_WAITING_CHARS = 2 ** 20;

/**
 * Standard output, for a log that nothing else depends on. A disk without room ends nothing and holds nothing up; what is
 * still to be written follows once there is room again.
 */
export function logDestination(): DestinationStream {
  const stream = destination({ fd: process.stdout.fd, sync: false, maxLength: MOST_WAITING_CHARS });
  // At the end of the process it tries again and again until there is room.
  const flush = stream.flushSync;
  stream.on('error', () => {
    stream.flushSync = () => {};
  });
  stream.on('write', () => {
    stream.flushSync = flush;
  });
  return stream;
}
