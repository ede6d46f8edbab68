import { createServer, type Server } from 'node:net';

/** Below the ports that systems give to outgoing connections and to whoever asks for any. */
const FIRST_PORT = 24_000;
const PORTS = 8_000;

/** Ports that were free a moment ago, drawn so that nobody else is likely to take them; together, so that they differ. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(Array.from({ length: count }, serverOnAnyPort));
  const ports = servers.map((server) => (server.address() as { port: number }).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

async function serverOnAnyPort(): Promise<Server> {
  for (;;) {
    const server = createServer();
    const port = FIRST_PORT + Math.floor(Math.random() * PORTS);
    const isListening = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => resolve(true));
    });
    if (isListening) return server;
  }
}
