import { splitAddress } from '../../fleet/address.js';
import type { Address } from '../../fleet/fleet.js';

/** A well-formed `ip:port` as Envoy's `Address` message. */
export function envoyAddress(address: Address) {
  const { host, port } = splitAddress(address);
  return socketAddress(host, port);
}

/** An IP address, or a name that the cluster resolves, with a port. */
export function socketAddress(host: string, port: number) {
  return {
    address: {
      case: 'socketAddress' as const,
      value: { address: host, portSpecifier: { case: 'portValue' as const, value: port } },
    },
  };
}
