import type { Address } from '../../fleet/fleet.js';

const pattern = /^(?:\[([0-9a-fA-F:.%]+)\]|([^[\]:]+)):([0-9]{1,5})$/;

export function isAddress(text: string): boolean {
  const parts = pattern.exec(text);
  return parts !== null && Number(parts[3]) <= 65_535;
}

/** A `host:port` (IPv6 hosts in brackets) as Envoy's `SocketAddress` wants it. */
export function socketAddress(address: Address): { address: string; port: number } {
  const parts = pattern.exec(address);
  if (!isAddress(address) || parts === null)
    throw new RangeError(`${JSON.stringify(address)} is not host:port`);
  return { address: parts[1] ?? parts[2]!, port: Number(parts[3]) };
}

/** The `Address` message of that socket. */
export function envoyAddress(address: Address) {
  const { address: host, port } = socketAddress(address);
  return {
    address: {
      case: 'socketAddress' as const,
      value: { address: host, portSpecifier: { case: 'portValue' as const, value: port } },
    },
  };
}
