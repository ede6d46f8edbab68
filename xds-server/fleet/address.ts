import { isIP, SocketAddress } from 'node:net';
import type { Address } from './fleet.js';

export interface HostPort {
  readonly host: string;
  readonly port: number;
}

export type ParsedAddress =
  | { readonly address: Address }
  | { readonly error: string; readonly hint?: string };

/** Reads `ip:port` (IPv6 in brackets) and writes it as Envoy prints it. */
export function parseAddress(text: string): ParsedAddress {
  const match = /^(?:\[(?<six>[^\]]*)\]|(?<host>[^:]*))(?::(?<port>\d+))?$/.exec(text);
  if (match === null) {
    const hint = hintFor(text);
    return { error: `${JSON.stringify(text)} is not an ip:port`, ...(hint !== undefined && { hint }) };
  }
  const { six, host = six ?? '', port } = match.groups as Record<string, string | undefined>;
  if (isIP(host) !== (six === undefined ? 4 : 6)) {
    return {
      error: `${JSON.stringify(host)} is not an IP address`,
      ...(host === 'localhost' && { hint: 'use 127.0.0.1' }),
    };
  }
  if (six?.includes('%')) {
    return { error: `${JSON.stringify(six)} has a scope, which means nothing on other machines` };
  }
  if (port === undefined)
    return { error: `${JSON.stringify(text)} has no port`, hint: `such as "${text}:8000"` };
  const number = Number(port);
  if (number < 1 || number > 65535) return { error: `port ${port} is not between 1 and 65535` };
  if (six === undefined) return { address: `${host}:${number}` };
  return { address: `[${new SocketAddress({ address: six, family: 'ipv6' }).address}]:${number}` };
}

/** What seems to be meant by a text that is no address. */
function hintFor(text: string): string | undefined {
  const url = /^[a-z]+:\/\/([^/]+)/.exec(text);
  if (url !== null) return `without what a URL has more than that: ${JSON.stringify(url[1])}`;
  const [, six, port] = /^(.*):(\d+)$/.exec(text) ?? [];
  const hasPort = six !== undefined && isIP(six) === 6;
  if (!hasPort && isIP(text) !== 6) return undefined;
  return `write IPv6 addresses in brackets, with a port: "${hasPort ? `[${six}]:${port}` : `[${text}]:8000`}"`;
}

/** Reads `name:port`; undefined when it is none. */
export function parseHostPort(text: string): HostPort | undefined {
  const match = /^([A-Za-z0-9_](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9.])?):(\d{1,5})$/.exec(text);
  const port = Number(match?.[2]);
  return match !== null && port >= 1 && port <= 65535 ? { host: match[1]!, port } : undefined;
}

/** Reads what can be connected to: `name:port` or an address; undefined when it is neither. */
export function parseTarget(text: string): HostPort | undefined {
  const parsed = parseAddress(text);
  return 'address' in parsed ? splitAddress(parsed.address) : parseHostPort(text);
}

/** Writes what `parseTarget` reads. */
export function targetText({ host, port }: HostPort): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** An address that is known to be well-formed, as Envoy prints it. */
export function normaliseAddress(text: string): Address {
  const parsed = parseAddress(text);
  if ('error' in parsed) throw new RangeError(parsed.error);
  return parsed.address;
}

/** Splits an address that `parseAddress` wrote. */
export function splitAddress(address: Address): HostPort {
  const colon = address.lastIndexOf(':');
  return { host: address.slice(0, colon).replace(/^\[|\]$/g, ''), port: Number(address.slice(colon + 1)) };
}

/** Where this machine itself reaches what listens at an address. */
export function ownTarget(listen: Address): HostPort {
  const { host, port } = splitAddress(listen);
  return { host: isWildcard(listen) ? '127.0.0.1' : host, port };
}

/** Whether it can be one machine: neither any, nor many, nor all of them. */
export function isOneHost(address: Address): boolean {
  const { host } = splitAddress(address);
  const isGroup = isIP(host) === 6 ? /^ff/i.test(host) : Number(host.split('.')[0]) >= 224;
  return !isWildcard(address) && !isGroup;
}

/** Whether it names every interface, so that it says nothing about the machine. */
export function isWildcard(address: Address): boolean {
  const { host } = splitAddress(address);
  return host === '0.0.0.0' || host === '::';
}
