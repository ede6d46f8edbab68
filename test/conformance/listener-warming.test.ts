import { readFileSync } from 'node:fs';
import { expect, it, vi } from 'vitest';
import type { ResourceSet } from '../../xds-server/xds/index.js';
import { createCollection } from '../../xds-server/xds/protocol/resource.js';
import { EXTENSION_TYPE, ROUTE_TYPE } from '../../xds-server/xds/protocol/type-url.js';
import { eventually, sleep } from '../e2e/harness/process.js';
import { OneEnvoy } from './envoy/one-envoy.js';

// Starting Envoy takes a while on a busy machine.
vi.setConfig({ testTimeout: 90_000 });

/** Longer than Envoy waits for a resource unless told otherwise. */
const LATE_MS = 17_000;

const FILTER = new URL('../../dist/filter/wardrop.wasm', import.meta.url);

const without = (resources: ResourceSet, type: string): ResourceSet => ({
  ...resources,
  viewOf: (node) => new Map(resources.viewOf(node)).set(type, createCollection([])),
});

it.concurrent.each([
  ['filter', EXTENSION_TYPE],
  ['routes', ROUTE_TYPE],
])(
  'Envoy answers no request by a listener whose %s it has not got yet, however late',
  async (_what, type) => {
    const envoy = await OneEnvoy.start({ first: (resources) => without(resources(), type) });
    try {
      await eventually('what there is', () => envoy.server.nodes()[0]?.types[type] !== undefined);
      await sleep(LATE_MS);
      expect(await envoy.ask()).toBeUndefined();
      envoy.server.setResources('west', envoy.resources());
      await eventually('an answer', async () => (await envoy.ask())?.status === 200);
    } finally {
      await envoy.stop();
    }
  },
);

it.concurrent('Envoy goes on with its filter where a control server, asked by delta, has none of its name', async () => {
  const envoy = await OneEnvoy.start({ delta: true, first: (resources) => resources() });
  try {
    await eventually('an answer', async () => (await envoy.ask())?.status === 200);
    await envoy.replaceServer(without(envoy.resources(), EXTENSION_TYPE));
    await eventually('the filter', () => envoy.server.nodes()[0]?.types[EXTENSION_TYPE] !== undefined);
    expect(await envoy.server.settled('west', 30_000)).toBe(true);
    expect((await envoy.ask())?.status).toBe(200);
  } finally {
    await envoy.stop();
  }
});

it.concurrent.each(['state of the world', 'delta'])(
  'Envoy goes on with its filter by %s until the next one, which it has already, has a snapshot, also when the control server dies meanwhile',
  async (protocol) => {
    let isReady = true;
    const delta = protocol === 'delta';
    const envoy = await OneEnvoy.start({ delta, isReady: () => isReady, first: (resources) => resources() });
    try {
      await eventually('an answer', async () => (await envoy.ask())?.status === 200);
      isReady = false;
      // Nobody gives it a snapshot.
      const next = envoy.resources(readFileSync(FILTER));
      await envoy.replaceServer(next);
      await eventually('the filter', () => {
        const { sent, unansweredSinceMs } = envoy.server.nodes()[0]?.types[EXTENSION_TYPE] ?? {};
        return sent && unansweredSinceMs === null;
      });
      expect((await envoy.ask())?.status).toBe(200);
      await envoy.server.stop();
      expect((await envoy.ask())?.status).toBe(200);
      isReady = true;
      await envoy.replaceServer(next);
      await eventually('the next filter', async () => (await envoy.ask())?.status === 503);
    } finally {
      await envoy.stop();
    }
  },
);

it.concurrent('an Envoy that has rejected its first filter says that another may serve, and serves with the next', async () => {
  const broken = Buffer.from('no module');
  const envoy = await OneEnvoy.start({ first: (resources) => resources(broken) });
  try {
    await eventually('an answer', async () => (await envoy.ask()) !== undefined);
    const answer = await envoy.ask();
    expect(answer?.status).toBe(503);
    expect(await answer?.json()).toEqual({
      type: 'error',
      error: {
        message: 'this Envoy has no filter',
        type: 'server_error',
        param: null,
        code: expect.any(String),
      },
    });
    envoy.server.setResources('west', envoy.resources());
    await eventually('an answer', async () => (await envoy.ask())?.status === 200);
  } finally {
    await envoy.stop();
  }
});
