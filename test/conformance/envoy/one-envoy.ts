import type { Address, Fleet } from '../../../xds-server/fleet/fleet.js';
import {
  buildBootstrap,
  buildResources,
  frontendOf,
  type ResourceSet,
  XdsServer,
} from '../../../xds-server/xds/index.js';
import { eventually } from '../../e2e/harness/process.js';
import { StubEngine } from '../../e2e/harness/stub-engine.js';
import { freePorts } from '../../free-ports.js';
import { silent } from '../silent.js';
import { Envoy } from './envoy.js';
import { fleetOf, planOf, statesOf } from './fleet.js';
import { decide, steeringModule } from './steering-module.js';

interface OneEnvoyOptions {
  readonly delta?: boolean;
  /** Whether it holds the newest snapshot; default yes. */
  readonly isReady?: () => boolean;
  /** What the Envoy is given first. */
  readonly first: (resources: OneEnvoy['resources']) => ResourceSet;
}

/** An xDS server, an Envoy that it configures, and an engine behind it. */
export class OneEnvoy {
  server: XdsServer;
  readonly #startServer: () => Promise<XdsServer>;
  readonly #engine: StubEngine;
  readonly #envoy: Envoy;
  readonly #listen: string;
  /** All that there is, with a filter that steers as a request says unless another is given. */
  readonly resources: (wasmModule?: Uint8Array) => ResourceSet;

  private constructor(
    server: XdsServer,
    startServer: () => Promise<XdsServer>,
    engine: StubEngine,
    envoy: Envoy,
    listen: string,
    resources: OneEnvoy['resources'],
  ) {
    this.server = server;
    this.#startServer = startServer;
    this.#engine = engine;
    this.#envoy = envoy;
    this.#listen = listen;
    this.resources = resources;
  }

  static async start({ delta = false, isReady = () => true, first }: OneEnvoyOptions): Promise<OneEnvoy> {
    const engine = await new StubEngine('a').start();
    const [listenPort, adminPort] = await freePorts(2);
    const listen = `127.0.0.1:${listenPort}`;
    const admin = `127.0.0.1:${adminPort}`;
    const fleet = fleetOf(listen, { a: [engine.address] });
    const resources = (wasmModule = steeringModule()) =>
      buildResources({
        fleet,
        frontendId: 'west',
        plan: planOf(fleet, { a: 1 }),
        engines: statesOf(fleet),
        wasmModule,
        filter: { frontendId: 'west' },
      });
    const server = serverOn('127.0.0.1:0', fleet, isReady);
    const xds = { host: '127.0.0.1', port: Number((await server.start()).split(':')[1]) };
    server.setResources('west', first(resources));
    const bootstrap = buildBootstrap({
      frontend: fleet.frontends[0]!,
      nodeId: 'n',
      xds,
      sync: xds,
      admin,
      delta,
    });
    const envoy = await Envoy.start(bootstrap, admin);
    const startServer = async () => {
      const next = serverOn(`${xds.host}:${xds.port}`, fleet, isReady);
      await next.start();
      return next;
    };
    return new OneEnvoy(server, startServer, engine, envoy, listen, resources);
  }

  /** Asks the engine through Envoy; undefined when nothing listens. */
  ask(): Promise<Response | undefined> {
    return fetch(`http://${this.#listen}/v1/chat/completions`, {
      headers: { [decide.cluster]: 'm1', [decide.destination]: this.#engine.address },
    }).catch(() => undefined);
  }

  /** Another server in the place of the one before. */
  async replaceServer(resources: ResourceSet): Promise<void> {
    await this.server.stop();
    this.server = await this.#startServer();
    this.server.setResources('west', resources);
    await eventually('Envoy', () => this.server.nodes().length > 0);
  }

  async stop(): Promise<void> {
    await this.#envoy.stop();
    await this.server.stop();
    await this.#engine.kill();
  }
}

function serverOn(listen: Address, { frontends }: Fleet, isReady: () => boolean): XdsServer {
  return new XdsServer({
    listen,
    resolveFrontend: (node) => frontendOf(node, frontends),
    isReady,
    log: silent,
  });
}
