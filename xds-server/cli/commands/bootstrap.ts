import { isIP } from 'node:net';
import { hostname } from 'node:os';
import { isDeepStrictEqual } from 'node:util';
import type { Command } from 'commander';
import { Option } from 'commander';
import { stringify } from 'yaml';
import { decodeSnapshot } from '../../../wire/snapshot-reader.js';
import type { SnapshotView } from '../../../wire/snapshot-view.js';
import type { Config, PeerAddresses, ServerSettings } from '../../config/config.js';
import { loadConfig } from '../../config/load.js';
import { offlineSnapshot } from '../../control/offline/offline.js';
import { staticStart } from '../../control/offline/static-start.js';
import { isWildcard, parseAddress, splitAddress } from '../../fleet/address.js';
import type { Address } from '../../fleet/fleet.js';
import { Optimizer } from '../../optimizer/index.js';
import { isNodeId } from '../../sync/caller.js';
import { type BootstrapTls, buildBootstrap } from '../../xds/index.js';
import { readWasmModule } from '../package-files.js';
import { askForBytes } from '../source.js';
import { UsageError } from '../usage-error.js';

const TARGET_ENVOY = '1.40.0';

/** Options that say how Envoy speaks TLS to the control server. */
const TLS_OPTIONS = {
  ca: '--ca',
  serverName: '--server-name',
  clientCert: '--client-cert',
  clientKey: '--client-key',
} as const;

interface BootstrapOptions {
  readonly config: string;
  readonly frontend: string;
  readonly nodeId?: string;
  readonly listen?: string;
  readonly admin: string;
  readonly control?: string;
  readonly ca?: string;
  readonly serverName?: string;
  readonly clientCert?: string;
  readonly clientKey?: string;
  readonly delta?: boolean;
  readonly loadReports?: boolean;
  readonly static?: boolean;
  readonly from?: string;
  readonly envoy?: string;
  readonly format: 'yaml' | 'json';
}

export function registerBootstrap(program: Command): void {
  program
    .command('bootstrap')
    .summary('print the bootstrap of an Envoy')
    .description(
      'Print a bootstrap for an Envoy of a frontend. It holds the token of the control server, if there is one: keep ' +
        'it as safe as the configuration.',
    )
    .requiredOption('-c, --config <file>', 'configuration file')
    .requiredOption('--frontend <id>', 'frontend that the Envoy belongs to')
    .option('--node-id <id>', 'unique name of the Envoy (default: FRONTEND-HOSTNAME-ADMINPORT)')
    .option('--listen <ip:port>', "where it listens for requests (default: the frontend's address)")
    .option('--admin <ip:port>', "where Envoy's own admin pages are", '127.0.0.1:9901')
    .option(
      '--control <host>',
      'how Envoy reaches the control server, the first one of several (default: where that listens, else the first of server.peers)',
    )
    .option('--ca <file>', "authority of the control server's certificate, on Envoy's machine")
    .option('--server-name <name>', "name in the control server's certificate (default: its host)")
    .option('--client-cert <file>', "Envoy's own certificate, on its machine")
    .option('--client-key <file>', "Envoy's own private key, on its machine")
    .option('--delta', 'incremental xDS instead of state of the world')
    .option('--load-reports', 'let Envoy report its own counts of requests, for one without the filter')
    .option(
      '--static',
      'put in a listener, clusters with endpoints and a snapshot, so that Envoy serves without a control server',
    )
    .option(
      '--from <url>',
      "with --static: admin address of the running control server, whose snapshot is taken (default: the state file's, or a plan made here)",
    )
    .option(
      '--envoy <version>',
      `with --static: version of the Envoy, which is not asked (default: ${TARGET_ENVOY})`,
    )
    .addOption(new Option('--format <format>', 'output format').choices(['yaml', 'json']).default('yaml'))
    .action(async (options: BootstrapOptions) => {
      const bootstrap = await bootstrapOf(options);
      console.log(
        options.format === 'json' ? JSON.stringify(bootstrap, null, 2) : stringify(bootstrap).trimEnd(),
      );
    });
}

async function bootstrapOf(options: BootstrapOptions): Promise<object> {
  const config = loadConfig(options.config);
  const { fleet, server } = config;
  const frontend = fleet.frontends.find(({ id }) => id === options.frontend);
  if (frontend === undefined) {
    const known = fleet.frontends.map(({ id }) => id).join(', ');
    throw new UsageError(`--frontend: ${JSON.stringify(options.frontend)} is none of ${known}`);
  }
  for (const name of ['from', 'envoy'] as const) {
    if (options[name] !== undefined && !options.static) throw new UsageError(`--${name} needs --static`);
  }
  const admin = addressOption('--admin', options.admin);
  const listen = options.listen === undefined ? {} : { listen: addressOption('--listen', options.listen) };
  const tls = server.tls === undefined ? noTls(options) : tlsOf(options, server.tls.clientCa !== undefined);
  const [first, ...standbys] = controlServers(server, options.control);
  return buildBootstrap({
    frontend,
    nodeId: nodeIdOption(options.nodeId ?? `${frontend.id}-${hostname()}-${splitAddress(admin).port}`),
    xds: {
      ...first.xds,
      ...(tls !== undefined && { tls }),
      ...(server.token !== undefined && { token: server.token }),
    },
    sync: { ...first.sync, ...(tls !== undefined && { tls }) },
    standbys,
    ...listen,
    admin,
    ...(options.delta && { delta: true }),
    ...(options.loadReports && { loadReports: true }),
    ...(options.static && {
      resources: staticStart({
        config,
        snapshot: await snapshotOf(config, frontend.id, options.from),
        wasmModule: readWasmModule(),
        envoyVersion: versionOption(options.envoy ?? TARGET_ENVOY),
        ...listen,
      }),
    }),
  });
}

async function snapshotOf(
  config: Config,
  frontendId: string,
  url: string | undefined,
): Promise<SnapshotView> {
  if (url !== undefined) {
    if (!URL.canParse(url)) {
      throw new UsageError(`--from: ${JSON.stringify(url)} is no URL; such as http://127.0.0.1:18002`);
    }
    const path = `/v1/snapshot?frontend=${encodeURIComponent(frontendId)}`;
    return decodeSnapshot(await askForBytes({ url }, path));
  }
  const optimizer = new Optimizer();
  try {
    return await offlineSnapshot(config, frontendId, optimizer);
  } finally {
    await optimizer.close();
  }
}

/** The control servers in the order in which Envoy is to call them. */
function controlServers(
  { xdsListen, syncListen, peers }: ServerSettings,
  given: string | undefined,
): readonly [PeerAddresses, ...PeerAddresses[]] {
  const [first, ...others] = peers;
  const isAnywhere = isWildcard(xdsListen) || isWildcard(syncListen);
  if (given === undefined && isAnywhere && first !== undefined) return [first, ...others];
  const target = (listen: Address) => ({
    host: controlHost(listen, given),
    port: splitAddress(listen).port,
  });
  const own = { xds: target(xdsListen), sync: target(syncListen) };
  return [own, ...peers.filter((peer) => !isDeepStrictEqual(peer, own))];
}

function controlHost(listen: Address, given: string | undefined): string {
  if (given !== undefined) return hostOption('--control', given);
  if (!isWildcard(listen)) return splitAddress(listen).host;
  throw new UsageError(
    `the control server listens on ${listen}; give --control, the host that Envoy connects to`,
  );
}

function noTls(options: BootstrapOptions): undefined {
  for (const [key, name] of Object.entries(TLS_OPTIONS)) {
    if (options[key as keyof typeof TLS_OPTIONS] === undefined) continue;
    throw new UsageError(`${name}: the control server speaks no TLS; set server.tls or leave the option out`);
  }
}

function tlsOf(options: BootstrapOptions, needsClient: boolean): BootstrapTls {
  const { ca, serverName, clientCert, clientKey } = options;
  if (ca === undefined) throw new UsageError('the control server uses TLS; give --ca');
  if ((clientCert === undefined) !== (clientKey === undefined)) {
    throw new UsageError('--client-cert and --client-key belong together; give both');
  }
  const hasClient = clientCert !== undefined && clientKey !== undefined;
  if (needsClient && !hasClient) {
    throw new UsageError(
      'the control server asks for client certificates; give --client-cert and --client-key',
    );
  }
  return {
    caFile: ca,
    ...(serverName === undefined ? {} : { serverName }),
    ...(hasClient ? { client: { certificateFile: clientCert, keyFile: clientKey } } : {}),
  };
}

function nodeIdOption(text: string): string {
  if (isNodeId(text)) return text;
  throw new UsageError(
    `--node-id: ${JSON.stringify(text)} is no name of 1 to 256 ASCII characters, without spaces`,
  );
}

function versionOption(text: string): string {
  if (/^\d+\.\d+\.\d+$/.test(text)) return text;
  throw new UsageError(`--envoy: ${JSON.stringify(text)} is no version such as 1.40.0`);
}

function addressOption(name: string, text: string): Address {
  const parsed = parseAddress(text);
  if ('address' in parsed) return parsed.address;
  throw new UsageError(`${name}: ${parsed.error} (give ip:port, such as 127.0.0.1:9901)`);
}

/** An address or a name, without a port. */
function hostOption(name: string, text: string): string {
  if (isIP(text) !== 0 || /^[A-Za-z0-9_][A-Za-z0-9._-]*$/.test(text)) return text;
  throw new UsageError(
    `${name}: ${JSON.stringify(text)} is no host (give a name or an IP address, without a port)`,
  );
}
