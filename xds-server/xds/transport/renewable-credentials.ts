import * as grpc from '@grpc/grpc-js';

/** PEM files' contents. */
export interface ServerTls {
  readonly certificate: Buffer;
  readonly key: Buffer;
  /** When given, clients must show a certificate of this authority. */
  readonly clientCa?: Buffer;
}

/** Certificates that others take the place of while the server runs; open connections stay as they are. */
export class RenewableCredentials extends grpc.ServerCredentials {
  constructor(tls: ServerTls) {
    super({ requestCert: tls.clientCa !== undefined }, contextOf(tls));
  }

  renew(tls: ServerTls): void {
    this.updateSecureContextOptions(contextOf(tls));
  }

  override _equals(other: grpc.ServerCredentials): boolean {
    return this === other;
  }
}

function contextOf({ certificate, key, clientCa }: ServerTls) {
  return { cert: certificate, key, ...(clientCa !== undefined && { ca: clientCa }) };
}
