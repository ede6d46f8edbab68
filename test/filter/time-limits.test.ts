import { describe, expect, it } from 'vitest';
import { ask, bodyOf, started } from './observed.js';

describe('the time limits', () => {
  const routeOf = (request: object) => ask(started(), request).header('x-wardrop-route');
  const prompt = (tokens: number) => [{ role: 'user', content: 'x'.repeat(tokens * 4 - 29) }];

  it('are those of streams by the length of the prompt', () => {
    expect(routeOf({ stream: true, messages: prompt(8192) })).toBe('stream-short');
    expect(routeOf({ stream: true, messages: prompt(8193) })).toBe('stream-medium');
    expect(routeOf({ stream: true, messages: prompt(32768) })).toBe('stream-medium');
    expect(routeOf({ stream: true, messages: prompt(32769) })).toBe('stream-long');
  });

  it('are the others for requests that ask for no stream, or whose body is not read', () => {
    expect(routeOf({ stream: false, messages: [] })).toBeUndefined();
    expect(ask(started()).header('x-wardrop-route')).toBeUndefined();
  });

  it('are not for clients to choose', () => {
    const sent = { 'x-wardrop-route': 'stream-long', 'x-session-id': 'a', 'x-wardrop-model': 'm' };
    expect(started().request(sent).header('x-wardrop-route')).toBeUndefined();
    const body = bodyOf({ stream: true });
    const read = started()
      .request({ 'x-wardrop-route': 'stream-long', 'content-type': 'application/json' })
      .send(body, true);
    expect(read.header('x-wardrop-route')).toBe('stream-short');
  });
});
