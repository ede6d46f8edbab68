import { create, type JsonObject, toJson } from '@bufbuild/protobuf';
import { XDS_CLUSTER } from '../../wire/names.js';
import type { Address, Frontend } from '../fleet/fleet.js';
import { BootstrapSchema } from '../gen/envoy/config/bootstrap/v3/bootstrap_pb.js';
import { ApiConfigSource_ApiType, ApiVersion } from '../gen/envoy/config/core/v3/config_source_pb.js';
import { type ControlServers, controlClusters } from './control-clusters.js';
import { registry } from './registry.js';
import { envoyAddress } from './resources/address.js';
import { METADATA_KEY } from './resources/node-metadata.js';
import { duration } from './resources/pack.js';
import { RUNTIME_NAME } from './resources/runtime.js';
import type { StaticResources } from './static-resources.js';

export interface BootstrapInput extends ControlServers {
  readonly frontend: Frontend;
  /** Unique among all Envoys. */
  readonly nodeId: string;
  /** Where this Envoy listens; default: the frontend's address. */
  readonly listen?: Address;
  /** Incremental instead of state of the world; default false. */
  readonly delta?: boolean;
  /** Whether Envoy reports its own counts of requests (LRS), for one without the filter; default false. */
  readonly loadReports?: boolean;
  /** What Envoy begins with, and goes on with while there is no control server; default nothing. */
  readonly resources?: StaticResources;
  /** Envoy's admin pages; default 127.0.0.1:9901. They can stop Envoy: keep them on loopback. */
  readonly admin?: Address;
}

/**
 * Envoy starts after this time without what it could do without, which may come later; its default of 15 s would hold
 * up a start without a control server.
 */
const START_WAIT_MS = 1000;

/** Pauses between attempts to reach the control server grow from the one to the other, with jitter. */
const RECONNECT_MS = { base: 500, max: 5000 };

const grpcServices = [
  {
    targetSpecifier: {
      case: 'envoyGrpc' as const,
      value: {
        clusterName: XDS_CLUSTER,
        // Envoy's own limit is 30 s: too long for a control server that is back.
        retryPolicy: {
          retryBackOff: {
            baseInterval: duration(RECONNECT_MS.base),
            maxInterval: duration(RECONNECT_MS.max),
          },
        },
      },
    },
  },
];

/**
 * An Envoy bootstrap as a JSON object (YAML by any printer). It says who the Envoy is and where the control server
 * is; everything else comes over ADS, but for the listener where one is given.
 */
export function buildBootstrap(input: BootstrapInput): JsonObject {
  const { frontend, nodeId, resources } = input;
  const fromAds = {
    resourceApiVersion: ApiVersion.V3,
    configSourceSpecifier: { case: 'ads' as const, value: {} },
  };
  const fromAdsInTime = { ...fromAds, initialFetchTimeout: duration(START_WAIT_MS) };
  const ours: JsonObject = {
    frontend: frontend.id,
    ...(input.listen !== undefined && { listen: input.listen }),
  };
  const bootstrap = create(BootstrapSchema, {
    node: {
      id: nodeId,
      cluster: frontend.id,
      locality: { region: frontend.region },
      metadata: { [METADATA_KEY]: ours },
    },
    admin: { address: envoyAddress(input.admin ?? '127.0.0.1:9901') },
    layeredRuntime: {
      layers: [
        {
          name: RUNTIME_NAME,
          layerSpecifier: {
            case: 'rtdsLayer',
            value: { name: RUNTIME_NAME, rtdsConfig: fromAdsInTime },
          },
        },
        // What an operator sets by hand wins. Naming any layer drops the ones that Envoy has by default.
        { name: 'admin', layerSpecifier: { case: 'adminLayer', value: {} } },
      ],
    },
    dynamicResources: {
      adsConfig: {
        apiType: input.delta ? ApiConfigSource_ApiType.DELTA_GRPC : ApiConfigSource_ApiType.GRPC,
        transportApiVersion: ApiVersion.V3,
        setNodeOnFirstMessageOnly: true,
        grpcServices,
      },
      ...(resources === undefined
        ? { cdsConfig: fromAds, ldsConfig: fromAds }
        : { cdsConfig: fromAdsInTime }),
    },
    ...(input.loadReports && {
      clusterManager: {
        loadStatsConfig: {
          apiType: ApiConfigSource_ApiType.GRPC,
          transportApiVersion: ApiVersion.V3,
          grpcServices,
        },
      },
    }),
    staticResources: {
      clusters: [...controlClusters(input), ...(resources?.clusters ?? [])],
      listeners: resources?.listeners ?? [],
    },
  });
  return toJson(BootstrapSchema, bootstrap, { registry, useProtoFieldName: true }) as JsonObject;
}
