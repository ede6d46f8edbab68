import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';

/** Below the ports that systems give to outgoing connections and to whoever asks for any. */
const FIRST_PORT = 24_000;
const PORTS = 8_000;

/**
 * Ports that nobody listens at, and that no other process draws here before this one has ended: between the drawing and the
 * use of a port lie seconds on a busy machine, and a server that is started again wants the one that it had.
 */
export async function freePorts(count: number): Promise<number[]> {
  return Promise.all(Array.from({ length: count }, freePort));
}

async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST_PORT + Math.floor(Math.random() * PORTS);
    if ((await isClaimed(port)) && (await isFree(port))) return port;
  }
}

/** Whether the datagram port of the same number, which no server here needs, is this process's own from now on. */
function isClaimed(port: number): Promise<boolean> {
  const socket = createSocket('udp4');
  return new Promise((resolve) => {
    socket.once('error', () => socket.close(() => resolve(false)));
    socket.bind(port, '127.0.0.1', () => {
      socket.unref();
      resolve(true);
    });
  });
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  const isListening = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => resolve(true));
  });
  if (isListening) await new Promise((resolve) => server.close(resolve));
  return isListening;
}
