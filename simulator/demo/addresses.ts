import { createServer } from 'node:net';
import { InvalidArgumentError } from 'commander';
import { WardropError } from '../../xds-server/errors.js';
import { splitAddress } from '../../xds-server/fleet/address.js';
import { engines, frontends } from './scenario.js';

const HOST = '127.0.0.1';
export const DEFAULT_BASE_PORT = 18000;

/** Reads the option that sets another. */
export function basePort(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1024 || value > 65_000) {
    throw new InvalidArgumentError('give a port from 1024 to 65000');
  }
  return value;
}

/** Every address the demo listens on, fixed distances from one port. */
export interface Addresses {
  readonly xds: string;
  readonly sync: string;
  readonly admin: string;
  /** By frontend id: where its Envoy takes requests, and its admin pages. */
  readonly frontend: Readonly<Record<string, string>>;
  readonly envoyAdmin: Readonly<Record<string, string>>;
  /** By engine id. */
  readonly engine: Readonly<Record<string, string>>;
}

export function addressesFrom(basePort: number): Addresses {
  const at = (offset: number) => `${HOST}:${basePort + offset}`;
  const each = (items: readonly { readonly id: string }[], offset: number) =>
    Object.fromEntries(items.map(({ id }, index) => [id, at(offset + index)]));
  return {
    xds: at(0),
    sync: at(1),
    admin: at(2),
    frontend: each(frontends, 11),
    envoyAdmin: each(frontends, 21),
    engine: each(engines, 31),
  };
}

/** Throws WARDROP_PORT_IN_USE with the first address that is taken. */
export async function requireFree(addresses: Addresses): Promise<void> {
  const uses: [string, string][] = [
    [addresses.xds, 'xDS of the control server'],
    [addresses.sync, 'sync of the control server'],
    [addresses.admin, 'API of the control server'],
    ...Object.entries(addresses.frontend).map(([id, it]): [string, string] => [it, `frontend ${id}`]),
    ...Object.entries(addresses.envoyAdmin).map(([id, it]): [string, string] => [it, `Envoy admin of ${id}`]),
    ...Object.entries(addresses.engine).map(([id, it]): [string, string] => [it, `engine ${id}`]),
  ];
  for (const [address, use] of uses) {
    const error = await tryListen(address);
    if (!error) continue;
    throw new WardropError(
      'WARDROP_PORT_IN_USE',
      `The demo cannot listen on ${address} (${use}): ${error.message}. Stop what listens there, or move the demo ` +
        'to other ports with --base-port.',
    );
  }
}

function tryListen(address: string): Promise<Error | undefined> {
  const { port } = splitAddress(address);
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', resolve);
    server.listen(port, HOST, () => server.close(() => resolve(undefined)));
  });
}
