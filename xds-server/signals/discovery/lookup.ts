import { lookup as lookupHost, Resolver } from 'node:dns/promises';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import type { DiscoverySource } from '../../config/config.js';
import { isOneHost, parseAddress } from '../../fleet/address.js';
import type { Address } from '../../fleet/fleet.js';
import { parseReplicaList } from '../../fleet/replica-list.js';

export interface LookupAnswer {
  readonly addresses: readonly Address[];
  /** When to look again. */
  readonly secondsToLive: number;
}

/** Finds the addresses that a source names; rejects with a reason when it cannot. */
export type Lookup = (source: DiscoverySource) => Promise<LookupAnswer>;

interface HostAnswer {
  readonly ips: readonly string[];
  readonly secondsToLive: number;
}

/** The part of Node's resolver that is needed. */
export type RecordResolver = Pick<Resolver, 'resolve4' | 'resolve6' | 'resolveSrv'>;

const FILE_SECONDS = 1;
/** Records that live shorter or longer are asked for again after this time. */
const LEAST_SECONDS = 1;
const MOST_SECONDS = 300;
/** For names of the hosts file, which say nothing about how long they live, and for SRV records, whose time Node hides. */
const UNKNOWN_SECONDS = 5;

/** Looks in files and DNS. */
export function systemLookup(resolver: RecordResolver = new Resolver({ timeout: 1_000, tries: 2 })): Lookup {
  const look = (source: DiscoverySource): Promise<LookupAnswer> => {
    if (source.kind === 'file') return fromFile(source.path);
    if (source.kind === 'srv') return fromSrv(resolver, source.name);
    return fromHost(resolver, source.host, source.port);
  };
  return async (source) => {
    const answer = await look(source);
    const odd = answer.addresses.find((address) => !isOneHost(address));
    // Resolvers that block a name answer so, and requests would go to whatever listens here.
    if (odd !== undefined) throw new Error(`${odd} is the address of no single machine`);
    return answer;
  };
}

async function fromHost(resolver: RecordResolver, host: string, port: number): Promise<LookupAnswer> {
  const { ips, secondsToLive } = await resolveHost(resolver, host);
  return { addresses: ips.map((ip) => addressOf(ip, port)), secondsToLive: bounded(secondsToLive) };
}

async function fromSrv(resolver: RecordResolver, name: string): Promise<LookupAnswer> {
  const targets = await resolver.resolveSrv(name);
  const answers = await Promise.all(targets.map((target) => fromHost(resolver, target.name, target.port)));
  return {
    addresses: answers.flatMap(({ addresses }) => addresses),
    secondsToLive: Math.min(UNKNOWN_SECONDS, ...answers.map((answer) => answer.secondsToLive)),
  };
}

/** Both families of addresses; an answer with one of them is good. */
async function resolveHost(resolver: RecordResolver, host: string): Promise<HostAnswer> {
  const settled = await Promise.allSettled([
    resolver.resolve4(host, { ttl: true }),
    resolver.resolve6(host, { ttl: true }),
  ]);
  const broken = settled.find((result) => result.status === 'rejected' && !isAbsent(result.reason));
  // An answer that lacks a family because asking for it failed would remove its replicas.
  if (broken?.status === 'rejected') throw broken.reason;
  const records = settled.flatMap((result) => (result.status === 'fulfilled' ? result.value : []));
  if (records.length === 0) return fromHostsFile(host);
  return {
    ips: records.map(({ address }) => address),
    secondsToLive: Math.min(...records.map(({ ttl }) => ttl)),
  };
}

async function fromHostsFile(host: string): Promise<HostAnswer> {
  const entries = await lookupHost(host, { all: true });
  return { ips: entries.map(({ address }) => address), secondsToLive: UNKNOWN_SECONDS };
}

function isAbsent(error: unknown): boolean {
  const { code } = error as { code?: string };
  return code === 'ENODATA' || code === 'ENOTFOUND';
}

/** One `ip:port` a line; `#` starts a comment. */
async function fromFile(path: string): Promise<LookupAnswer> {
  const text = await readFile(path, 'utf8');
  return { addresses: parseReplicaList(text, path), secondsToLive: FILE_SECONDS };
}

function addressOf(ip: string, port: number): Address {
  const parsed = parseAddress(isIP(ip) === 6 ? `[${ip}]:${port}` : `${ip}:${port}`);
  if ('error' in parsed) throw new Error(parsed.error);
  return parsed.address;
}

function bounded(seconds: number): number {
  return Math.min(MOST_SECONDS, Math.max(LEAST_SECONDS, seconds));
}
