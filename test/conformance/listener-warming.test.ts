import { expect, it, vi } from 'vitest';
import {
  buildBootstrap,
  buildResources,
  frontendOf,
  type ResourceSet,
  XdsServer,
} from '../../xds-server/xds/index.js';
import { createCollection } from '../../xds-server/xds/protocol/resource.js';
import { EXTENSION_TYPE, ROUTE_TYPE } from '../../xds-server/xds/protocol/type-url.js';
import { eventually, sleep } from '../e2e/harness/process.js';
import { StubEngine } from '../e2e/harness/stub-engine.js';
import { freePorts } from '../free-ports.js';
import { Envoy } from './envoy/envoy.js';
import { fleetOf, planOf, statesOf } from './envoy/fleet.js';
import { decide, steeringModule } from './envoy/steering-module.js';
import { silent } from './silent.js';

// Starting Envoy takes a while on a busy machine.
vi.setConfig({ testTimeout: 90_000 });

/** Longer than Envoy waits for a resource unless told otherwise. */
const LATE_MS = 17_000;

it.concurrent.each([
  ['filter', EXTENSION_TYPE],
  ['routes', ROUTE_TYPE],
])(
  'Envoy answers no request by a listener whose %s it has not got yet, however late',
  async (_what, type) => {
    const stub = await new StubEngine('a').start();
    const [listenPort, adminPort] = await freePorts(2);
    const listen = `127.0.0.1:${listenPort}`;
    const admin = `127.0.0.1:${adminPort}`;
    const fleet = fleetOf(listen, { a: [stub.address] });
    const whole = buildResources({
      fleet,
      frontendId: 'west',
      plan: planOf(fleet, { a: 1 }),
      engines: statesOf(fleet),
      wasmModule: steeringModule(),
      filter: { frontendId: 'west' },
    });
    const without: ResourceSet = {
      ...whole,
      viewOf: (node) => new Map(whole.viewOf(node)).set(type, createCollection([])),
    };
    const server = new XdsServer({
      listen: '127.0.0.1:0',
      resolveFrontend: (node) => frontendOf(node, fleet.frontends),
      log: silent,
    });
    const xds = { host: '127.0.0.1', port: Number((await server.start()).split(':')[1]) };
    server.setResources('west', without);
    const envoy = await Envoy.start(
      buildBootstrap({ frontend: fleet.frontends[0]!, nodeId: 'n', xds, sync: xds, admin }),
      admin,
    );
    const ask = () =>
      fetch(`http://${listen}/v1/chat/completions`, {
        headers: { [decide.cluster]: 'm1', [decide.destination]: stub.address },
      }).then(
        ({ status }) => status,
        () => 'none',
      );
    try {
      await eventually('what there is', () => server.nodes()[0]?.types[type] !== undefined);
      await sleep(LATE_MS);
      expect(await ask()).toBe('none');
      server.setResources('west', whole);
      await eventually('an answer', async () => (await ask()) === 200);
    } finally {
      await envoy.stop();
      await server.stop();
      await stub.kill();
    }
  },
);
