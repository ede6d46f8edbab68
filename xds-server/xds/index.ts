export { type BootstrapInput, buildBootstrap } from './bootstrap.js';
export type { BootstrapTls } from './control-clusters.js';
export type { Nack, NodeView, ResourceSet, TypeStatus, TypeView } from './protocol/control-plane.js';
export type { NodeIdentity } from './protocol/node.js';
export type { ResourceStatus } from './protocol/subscription.js';
export { EXTENSION_TYPE, shortType } from './protocol/type-url.js';
export {
  buildResources,
  type EnvoyOptions,
  type ResourceInput,
  type WeightPlan,
} from './resources/build-resources.js';
export { CONNECTION_BUFFER_BYTES } from './resources/listener.js';
export { envoyNode, frontendOf } from './resources/node-metadata.js';
export type { Steering } from './resources/steering.js';
export { inlineSnapshot, type StaticResources, staticResources } from './static-resources.js';
export { logGrpcTo } from './transport/grpc-log.js';
export type { Refusal } from './transport/refusals.js';
export type { ServerTls } from './transport/renewable-credentials.js';
export { XdsServer, type XdsServerOptions } from './transport/xds-server.js';
