import { splitAddress } from '../../fleet/address.js';
import type { Address } from '../../fleet/fleet.js';
import { ListenerSchema } from '../../gen/envoy/config/listener/v3/listener_pb.js';
import { RouterSchema } from '../../gen/envoy/extensions/filters/http/router/v3/router_pb.js';
import { HttpConnectionManagerSchema } from '../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js';
import type { Resource } from '../protocol/resource.js';
import { socketAddress } from './address.js';
import { discoveredFilter, fromAds } from './discovered.js';
import { FILTER_NAME, nextNameOf } from './filter.js';
import { filter, resource } from './pack.js';

const NAME = 'wardrop-next';
/** It has nothing to serve by then, and other listeners of an Envoy that starts wait for it. */
const FILTER_WAIT_MS = 1_000;

/**
 * Has the VMs of the filter that comes next while the one before still serves. No connection leads here, as nothing binds the
 * address: another one than that of any listener, as Envoy wants it, and of a kind that the machine has.
 */
export function nextFilterListener(listen: Address): Resource {
  return resource(NAME, ListenerSchema, {
    name: NAME,
    address: socketAddress(splitAddress(listen).host, 0),
    bindToPort: false,
    filterChains: [
      {
        filters: [
          filter('envoy.filters.network.http_connection_manager', HttpConnectionManagerSchema, {
            statPrefix: NAME,
            routeSpecifier: { case: 'routeConfig', value: { name: NAME } },
            httpFilters: [
              discoveredFilter(nextNameOf(FILTER_NAME), fromAds(FILTER_WAIT_MS)),
              filter('envoy.filters.http.router', RouterSchema, {}),
            ],
          }),
        ],
      },
    ],
  });
}
