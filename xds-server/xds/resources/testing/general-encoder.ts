import { create, toBinary } from '@bufbuild/protobuf';
import { AnySchema, anyPack } from '@bufbuild/protobuf/wkt';
import { ClusterLoadAssignmentSchema } from '../../../gen/envoy/config/endpoint/v3/endpoint_pb.js';
import { envoyAddress } from '../address.js';
import type { Locality } from '../assignment-writer.js';

/** What `encodeAssignment` writes, by the general encoder. */
export function encodeGenerally(clusterName: string, localities: readonly Locality[]): Uint8Array {
  const assignment = create(ClusterLoadAssignmentSchema, {
    clusterName,
    endpoints: localities.map(({ engine, priority, hostWeight, health }) => ({
      locality: { region: engine.region, subZone: engine.id },
      priority,
      lbEndpoints: engine.endpoints.map((address, i) => ({
        hostIdentifier: { case: 'endpoint' as const, value: { address: envoyAddress(address) } },
        healthStatus: health[i]!,
        loadBalancingWeight: hostWeight,
      })),
    })),
  });
  return toBinary(AnySchema, anyPack(ClusterLoadAssignmentSchema, assignment));
}
