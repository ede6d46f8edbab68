import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { StubEngine } from '../e2e/harness/stub-engine.js';

it('a stub engine takes a request whose body is cut off for none, and serves on', async () => {
  const stub = await new StubEngine('a').start();
  onTestFinished(() => stub.kill());
  const url = `http://${stub.address}/v1/chat/completions`;
  const [host, port] = stub.address.split(':');
  const socket = connect(Number(port), host);
  socket.write(
    'POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\nexpect: 100-continue\r\n\r\n',
  );
  // The stub has the request when it asks for the body.
  await once(socket, 'data');
  socket.destroy();
  expect((await fetch(url, { method: 'POST', body: 'whole' })).status).toBe(200);
  expect(stub.requests.map(({ body }) => body)).toEqual(['whole']);
});
