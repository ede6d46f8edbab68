import { hostname } from 'node:os';
import type { Command } from 'commander';
import { Option } from 'commander';
import { stringify } from 'yaml';
import { isWildcard, parseAddress, splitAddress } from '../config/address.js';
import { loadConfig } from '../config/load.js';
import type { Address } from '../fleet/fleet.js';
import { type BootstrapTls, buildBootstrap } from '../xds/index.js';
import { UsageError } from './usage-error.js';

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
    .option('--control <host>', 'how Envoy reaches the control server (default: where that listens)')
    .option('--ca <file>', "authority of the control server's certificate, on Envoy's machine")
    .option('--server-name <name>', "name in the control server's certificate (default: its host)")
    .option('--client-cert <file>', "Envoy's own certificate, on its machine")
    .option('--client-key <file>', "Envoy's own private key, on its machine")
    .addOption(new Option('--format <format>', 'output format').choices(['yaml', 'json']).default('yaml'))
    .action((options: BootstrapOptions) => {
      const bootstrap = bootstrapOf(options);
      console.log(
        options.format === 'json' ? JSON.stringify(bootstrap, null, 2) : stringify(bootstrap).trimEnd(),
      );
    });
}

function bootstrapOf(options: BootstrapOptions): object {
  const { fleet, server } = loadConfig(options.config);
  const frontend = fleet.frontends.find(({ id }) => id === options.frontend);
  if (frontend === undefined) {
    const known = fleet.frontends.map(({ id }) => id).join(', ');
    throw new UsageError(`--frontend: ${JSON.stringify(options.frontend)} is none of ${known}`);
  }
  const admin = addressOption('--admin', options.admin);
  const tls = server.tls === undefined ? undefined : tlsOf(options, server.tls.clientCa !== undefined);
  const target = (listen: Address) => ({
    host: controlHost(listen, options.control),
    port: splitAddress(listen).port,
    ...(tls === undefined ? {} : { tls }),
  });
  return buildBootstrap({
    frontend,
    nodeId: options.nodeId ?? `${frontend.id}-${hostname()}-${splitAddress(admin).port}`,
    xds: { ...target(server.xdsListen), ...(server.token === undefined ? {} : { token: server.token }) },
    sync: target(server.syncListen),
    ...(options.listen === undefined ? {} : { listen: addressOption('--listen', options.listen) }),
    admin,
  });
}

function controlHost(listen: Address, given: string | undefined): string {
  if (given !== undefined) return given;
  if (!isWildcard(listen)) return splitAddress(listen).host;
  throw new UsageError(
    `the control server listens on ${listen}; give --control, the host that Envoy connects to`,
  );
}

function tlsOf(options: BootstrapOptions, needsClient: boolean): BootstrapTls {
  const { ca, serverName, clientCert, clientKey } = options;
  if (ca === undefined) throw new UsageError('the control server uses TLS; give --ca');
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

function addressOption(name: string, text: string): Address {
  const parsed = parseAddress(text);
  if ('address' in parsed) return parsed.address;
  throw new UsageError(`${name}: ${parsed.error}${parsed.hint === undefined ? '' : ` (${parsed.hint})`}`);
}
