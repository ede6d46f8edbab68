import { expect, it } from 'vitest';
import { type Bootstrap, withOpponents } from './envoy-config.js';
import { portsFrom } from './ports.js';

interface Made {
  readonly static_resources: {
    readonly clusters: readonly { readonly name: string }[];
    readonly listeners: readonly {
      readonly name: string;
      readonly filter_chains: readonly [{ readonly filters: readonly [{ readonly typed_config: Manager }] }];
    }[];
  };
}

interface Manager {
  readonly http_filters: readonly { readonly name: string }[];
  readonly route_config: { readonly virtual_hosts: readonly { readonly routes: readonly object[] }[] };
}

it("an opponent's listener differs from Wardrop's in its filter and its cluster only", () => {
  const manager = {
    stat_prefix: 'wardrop',
    use_remote_address: true,
    route_config: {
      virtual_hosts: [
        {
          name: 'v',
          routes: [
            { match: { prefix: '/a' }, route: { cluster_header: 'x', idle_timeout: '1s' } },
            { match: { path: '/b' }, direct_response: { status: 200 } },
            { match: { prefix: '/' }, route: { cluster_header: 'x', idle_timeout: '2s' } },
          ],
        },
      ],
    },
    http_filters: [{ name: 'wardrop' }, { name: 'envoy.filters.http.router' }],
  };
  const complete = {
    static_resources: {
      clusters: [],
      listeners: [{ filter_chains: [{ filters: [{ typed_config: manager }] }] }],
    },
  } as unknown as Bootstrap;
  const dynamic: Bootstrap = { static_resources: { clusters: [{ name: 'wardrop-xds' }] } };
  const made = withOpponents(
    { dynamic, complete },
    portsFrom(23_000),
    { headers: '/h', json: '/j' },
    { same: '/c.wasm', bare: '/bare.wasm' },
  ) as Made;
  const managers = new Map(
    made.static_resources.listeners.map(({ name, filter_chains: [{ filters }] }) => [
      name,
      filters[0].typed_config,
    ]),
  );
  for (const [name, cluster, filters] of [
    ['none', 'round-robin', ['envoy.filters.http.router']],
    ['c', 'override', ['wasm', 'envoy.filters.http.router']],
    ['bare-body', 'override', ['wasm', 'envoy.filters.http.router']],
    ['ext-proc', 'override', ['ext_proc', 'envoy.filters.http.router']],
  ] as const) {
    const { http_filters, route_config, ...rest } = managers.get(name)!;
    expect(http_filters.map((filter) => filter.name)).toEqual(filters);
    expect(rest).toEqual({ stat_prefix: name, use_remote_address: true });
    expect(route_config.virtual_hosts[0]!.routes).toEqual([
      { match: { prefix: '/a' }, route: { cluster, idle_timeout: '1s' } },
      { match: { path: '/b' }, direct_response: { status: 200 } },
      { match: { prefix: '/' }, route: { cluster, idle_timeout: '2s' } },
    ]);
  }
  expect(made.static_resources.clusters.map(({ name }) => name)).toContain('wardrop-xds');
});
