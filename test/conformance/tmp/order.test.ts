import { writeFileSync } from 'node:fs';
import pino from 'pino';
import { it } from 'vitest';
import { buildBootstrap, buildResources, frontendOf, XdsServer } from '../../../xds-server/xds/index.js';
import { Session } from '../../../xds-server/xds/protocol/session.js';
import { eventually, Process, sleep } from '../../e2e/harness/process.js';
import { StubEngine } from '../../e2e/harness/stub-engine.js';
import { fleetOf, planOf, statesOf } from '../envoy/fleet.js';
import { steeringModule } from '../envoy/steering-module.js';

it.each(['GRPC','DELTA_GRPC'])('try %s', async (api) => {
  const orig = Session.prototype.receive;
  Session.prototype.receive = function (r: any) { console.log('REQ', JSON.stringify({ ...r, node: undefined })); return orig.call(this, r); };
  const a = await new StubEngine('a').start();
  const server = new XdsServer({
    listen: '127.0.0.1:21500',
    resolveFrontend: (node) => frontendOf(node, fleetOf('127.0.0.1:21510', {}).frontends),
    log: pino(),
  });
  await server.start();
  const set = (models: string[], w: Record<string, number>, ct = 1000) => {
    console.log('SET', models, ct);
    const fleet = fleetOf('127.0.0.1:21510', { a: [a.address] }, models);
    server.setResources('west', buildResources({ fleet, frontendId: 'west', plan: planOf(fleet, w), engines: statesOf(fleet), wasmModule: steeringModule(), filterConfig: 'x', connectTimeoutMs: ct }));
    return fleet;
  };
  const fleet = set(['m1'], { a: 0.7 });
  const boot = JSON.stringify(buildBootstrap({ frontend: fleet.frontends[0]!, nodeId: 'n1', xds: { host: '127.0.0.1', port: 21500 }, sync: { host: '127.0.0.1', port: 21501 }, admin: '127.0.0.1:21511' })).replace('"GRPC"', `"${api}"`);
  writeFileSync('/tmp/try-envoy.json', boot);
  const envoy = new Process('envoy', process.env.ENVOY_BIN!, ['-c', '/tmp/try-envoy.json', '--concurrency', '1', '--disable-hot-restart', '--log-level', 'warning']);
  try {
    await eventually('ready', async () => (await fetch('http://127.0.0.1:21511/ready')).ok, 10000);
    await sleep(500);
    set(['m1', 'm2'], { a: 1 });
    await sleep(500);
    set(['m1', 'm2'], { a: 1 }, 2000);
    await sleep(500);
    set(['m1'], { a: 1 }, 2000);
    await sleep(500);
    console.log(server.nodes().map((n) => Object.values(n.types).map((t) => t.status)));
    await server.stop();
  } finally {
    console.log(envoy.output);
    await envoy.stop();
    await server.stop();
    await a.kill();
  }
}, 30000);
