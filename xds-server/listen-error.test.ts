import { createServer } from 'node:net';
import { expect, it } from 'vitest';
import { listenError } from './listen-error.js';

function failure(host: string, port: number): Promise<Error> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on('error', resolve);
    server.listen(port, host, () => server.close(() => reject(new Error('it listens'))));
  });
}

it('a taken port is told from an address that the machine does not have', async () => {
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
  const { port } = taken.address() as { port: number };
  expect(listenError('xDS', `127.0.0.1:${port}`, await failure('127.0.0.1', port))).toMatchObject({
    code: 'WARDROP_PORT_IN_USE',
    message: `cannot serve xDS on 127.0.0.1:${port}: something else listens there (EADDRINUSE)`,
  });
  taken.close();
  expect(listenError('sync', '192.0.2.1:80', await failure('192.0.2.1', 0))).toMatchObject({
    code: 'WARDROP_LISTEN_FAILED',
    message: 'cannot serve sync on 192.0.2.1:80: this machine has no such address (EADDRNOTAVAIL)',
  });
});

it("finds the system's error in gRPC's message, and tells others as they are", () => {
  const grpc = new Error(
    'No address added out of total 1 resolved errors: [listen EADDRNOTAVAIL: 192.0.2.1:1]',
  );
  expect(listenError('xDS', '192.0.2.1:1', grpc).code).toBe('WARDROP_LISTEN_FAILED');
  expect(listenError('xDS', 'x:1', new Error('strange')).message).toBe('cannot serve xDS on x:1: strange');
});
