import { type DestinationStream, destination } from 'pino';

/** What waits to be written, at most, before further lines are left out: as while nobody reads the other end of a pipe. */
const MOST_WAITING_CHARS = 2 ** 20;
/** Between two tries to write where there was no room. */
const RETRY_MS = 100;
/** So long the end of the process waits for a reader that is only slow. */
const END_WAIT_MS = 1_000;

/**
 * Standard output, for a log that nothing else depends on. A disk without room, or a pipe that nobody reads, ends nothing and holds
 * nothing up; what is still to be written follows once there is room again.
 */
export function logDestination(): DestinationStream {
  let giveUpAtMs: number | undefined;
  const stream = destination({
    fd: process.stdout.fd,
    sync: false,
    maxLength: MOST_WAITING_CHARS,
    // Its own tries keep a process from ending.
    retryEAGAIN: () => giveUpAtMs !== undefined && Date.now() < giveUpAtMs,
  });
  let retry: NodeJS.Timeout | undefined;
  let hasRoom = true;
  stream.on('error', ({ code }: NodeJS.ErrnoException) => {
    hasRoom = code === 'EAGAIN';
    clearTimeout(retry);
    if (code === 'EPIPE') return;
    retry = setTimeout(() => stream.write(''), RETRY_MS).unref();
  });
  stream.on('write', () => {
    hasRoom = true;
  });
  // At the end of the process it tries again and again until there is room, whatever the error.
  const flush = stream.flushSync;
  stream.flushSync = () => {
    if (!hasRoom) return;
    giveUpAtMs = Date.now() + END_WAIT_MS;
    try {
      flush.call(stream);
    } catch {
      // Nobody reads it.
    }
  };
  return stream;
}
