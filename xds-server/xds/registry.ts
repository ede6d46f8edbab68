import { createRegistry } from '@bufbuild/protobuf';
import { StringValueSchema } from '@bufbuild/protobuf/wkt';
import { BootstrapSchema } from '../gen/envoy/config/bootstrap/v3/bootstrap_pb.js';
import { ClusterSchema } from '../gen/envoy/config/cluster/v3/cluster_pb.js';
import { TypedExtensionConfigSchema } from '../gen/envoy/config/core/v3/extension_pb.js';
import { ClusterLoadAssignmentSchema } from '../gen/envoy/config/endpoint/v3/endpoint_pb.js';
import { ListenerSchema } from '../gen/envoy/config/listener/v3/listener_pb.js';
import { FilterConfigSchema } from '../gen/envoy/config/route/v3/route_components_pb.js';
import { RouteConfigurationSchema } from '../gen/envoy/config/route/v3/route_pb.js';
import { FileAccessLogSchema } from '../gen/envoy/extensions/access_loggers/file/v3/file_pb.js';
import {
  StderrAccessLogSchema,
  StdoutAccessLogSchema,
} from '../gen/envoy/extensions/access_loggers/stream/v3/stream_pb.js';
import { HeaderMutationSchema } from '../gen/envoy/extensions/filters/http/header_mutation/v3/header_mutation_pb.js';
import { RouterSchema } from '../gen/envoy/extensions/filters/http/router/v3/router_pb.js';
import { UpstreamCodecSchema } from '../gen/envoy/extensions/filters/http/upstream_codec/v3/upstream_codec_pb.js';
import { WasmSchema } from '../gen/envoy/extensions/filters/http/wasm/v3/wasm_pb.js';
import { HttpConnectionManagerSchema } from '../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js';
import { HeaderMutationSchema as EarlyHeaderMutationSchema } from '../gen/envoy/extensions/http/early_header_mutation/header_mutation/v3/header_mutation_pb.js';
import { MaglevSchema } from '../gen/envoy/extensions/load_balancing_policies/maglev/v3/maglev_pb.js';
import { OverrideHostSchema } from '../gen/envoy/extensions/load_balancing_policies/override_host/v3/override_host_pb.js';
import { RingHashSchema } from '../gen/envoy/extensions/load_balancing_policies/ring_hash/v3/ring_hash_pb.js';
import { RoundRobinSchema } from '../gen/envoy/extensions/load_balancing_policies/round_robin/v3/round_robin_pb.js';
import { PreviousHostsPredicateSchema } from '../gen/envoy/extensions/retry/host/previous_hosts/v3/previous_hosts_pb.js';
import { UpstreamTlsContextSchema } from '../gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.js';
import { HttpProtocolOptionsSchema } from '../gen/envoy/extensions/upstreams/http/v3/http_protocol_options_pb.js';
import { RuntimeSchema } from '../gen/envoy/service/runtime/v3/rtds_pb.js';

/** Every message that Wardrop packs into an `Any`, so that configurations can be read and written as JSON. */
export const registry = createRegistry(
  BootstrapSchema,
  ClusterLoadAssignmentSchema,
  ClusterSchema,
  EarlyHeaderMutationSchema,
  FileAccessLogSchema,
  FilterConfigSchema,
  HeaderMutationSchema,
  HttpConnectionManagerSchema,
  HttpProtocolOptionsSchema,
  ListenerSchema,
  MaglevSchema,
  OverrideHostSchema,
  PreviousHostsPredicateSchema,
  RingHashSchema,
  RoundRobinSchema,
  RouteConfigurationSchema,
  RouterSchema,
  RuntimeSchema,
  StderrAccessLogSchema,
  StdoutAccessLogSchema,
  StringValueSchema,
  TypedExtensionConfigSchema,
  UpstreamCodecSchema,
  UpstreamTlsContextSchema,
  WasmSchema,
);
