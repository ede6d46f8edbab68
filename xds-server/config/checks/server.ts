import { parseTarget, splitAddress } from '../../fleet/address.js';
import type { Path } from '../problem.js';
import { type Draft, type Findings, HOW_TO_LISTEN } from './findings.js';

export function checkServer(config: Draft, found: Findings): void {
  const { server } = config;
  if (server?.token !== undefined && server.tokenFile !== undefined) {
    found.problem(['server', 'tokenFile'], 'give either token or tokenFile', { at: 'key' });
  }
  const seen = new Map<string, Path>();
  const isGuarded = server?.token ?? server?.tokenFile ?? server?.tls?.clientCa;
  for (const name of ['xds', 'sync', 'admin'] as const) {
    const path = ['server', name, 'listen'];
    const address = found.address(path, server?.[name]?.listen, HOW_TO_LISTEN);
    if (address === undefined) continue;
    found.once(seen, address, path, `the listening address ${address}`);
    if (splitAddress(address).host.startsWith('127.') || splitAddress(address).host === '::1') continue;
    if (name === 'admin') {
      found.warn(path, 'the admin API has no authentication and is not limited to this machine');
    } else if (isGuarded === undefined) {
      found.warn(path, `anyone who reaches ${address} can use it`, 'set token, tokenFile or tls.clientCa');
    }
  }
  checkPeers(config, found);
}

function checkPeers(config: Draft, found: Findings): void {
  const seen = new Map<string, Path>();
  for (const [index, peer] of (config.server?.peers ?? []).entries()) {
    const hosts = (['xds', 'sync'] as const).flatMap((name) => {
      const text = peer?.[name];
      if (text === undefined) return [];
      const path = ['server', 'peers', index, name];
      const target = parseTarget(text);
      if (target === undefined) found.problem(path, `${JSON.stringify(text)} is no name:port or ip:port`);
      else found.once(seen, text, path, `the address ${text}`);
      return target?.host ?? [];
    });
    if (new Set(hosts).size > 1) {
      found.problem(['server', 'peers', index], `xds and sync of one peer must be on the same host`);
    }
  }
}
