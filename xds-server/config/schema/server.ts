import { filePath, listenAddress } from './scalars.js';

const listen = (defaultAddress: string, description: string) =>
  ({
    type: 'object',
    description,
    additionalProperties: false,
    properties: {
      listen: {
        ...listenAddress,
        description: '`ip:port` to listen on, IPv6 in brackets.',
        default: defaultAddress,
      },
    },
    default: {},
  }) as const;

const hostPort = (description: string) =>
  ({
    type: 'string',
    minLength: 1,
    maxLength: 260,
    description: `${description} \`name:port\` or \`ip:port\`, IPv6 in brackets.`,
  }) as const;

export const server = {
  type: 'object',
  description:
    'The control server itself. Listening addresses, the state file, the token and peers need a restart to change; certificates do not.',
  additionalProperties: false,
  properties: {
    xds: listen(
      '127.0.0.1:18000',
      'Where Envoys fetch clusters, endpoints, listeners and routes (gRPC, ADS).',
    ),
    sync: listen('127.0.0.1:18001', 'Where filters report usage and fetch snapshots (HTTP).'),
    admin: listen(
      '127.0.0.1:18002',
      'API, metrics and health of the control server (HTTP, unauthenticated).',
    ),
    stateFile: {
      ...filePath,
      description: 'Keeps the last plan over restarts. Relative to the configuration file.',
      default: 'wardrop-state.json',
    },
    token: {
      type: 'string',
      pattern: '^[\\x21-\\x7e]{16,}$',
      hint: 'use at least 16 printable characters without spaces',
      description:
        'Bearer token that Envoys must present to xDS and sync: at least 16 printable characters. Default: none.',
    },
    tokenFile: {
      ...filePath,
      description: 'File that holds the token, instead of `token`. Relative to the configuration file.',
    },
    tls: {
      type: 'object',
      description:
        'TLS for xDS and sync. Files are PEM, relative to the configuration file. Default: plain text.',
      additionalProperties: false,
      required: ['cert', 'key'],
      properties: {
        cert: { ...filePath, description: 'Certificate chain of the control server.' },
        key: { ...filePath, description: 'Its private key.' },
        clientCa: {
          ...filePath,
          description: 'Require client certificates signed by these authorities (mutual TLS).',
        },
        peerCa: {
          ...filePath,
          description: 'Authorities of the certificates of `server.peers`. Default: those of the system.',
        },
      },
    },
    peers: {
      type: 'array',
      description:
        'Other control servers of the same fleet, which share what they hear and one plan; all of them, or all but itself. With `clientCa`, they show each other their own certificates. Default: none.',
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['xds', 'sync'],
        properties: {
          xds: hostPort('Where Envoys reach its `server.xds`; for their bootstraps.'),
          sync: hostPort('Where Envoys and control servers reach its `server.sync`.'),
        },
      },
      default: [],
    },
    edsIntervalSeconds: {
      type: 'number',
      minimum: 0.1,
      maximum: 300,
      description: 'Least seconds between two pushes of endpoints that differ in weights only.',
      default: 5,
    },
    logLevel: {
      type: 'string',
      enum: ['debug', 'info', 'warn', 'error'],
      description: 'Least severity that is logged.',
      default: 'info',
    },
  },
  default: {},
} as const;
