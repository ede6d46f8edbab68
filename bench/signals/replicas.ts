import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

// A process of its own: serves health and metrics pages on as many ports, so that their cost is not counted.

const [count, page] = await new Promise<[number, string]>((resolve) =>
  process.once('message', resolve as never),
);
const body = Buffer.from(page);
const ports: number[] = [];
for (let replica = 0; replica < count; replica++) {
  const server = createServer((request, response) => {
    if (request.url === '/metrics') response.setHeader('content-type', 'text/plain; version=0.0.4');
    response.end(request.url === '/metrics' ? body : '');
  });
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ports.push((server.address() as AddressInfo).port);
}
process.send!(ports);
