import { generateKeyPairSync, type KeyObject, type KeyPairKeyObjectResult, sign } from 'node:crypto';

/** A certificate with its key, both PEM. */
export interface Certificate {
  readonly certificate: Buffer;
  readonly key: Buffer;
}

let serial = 1;

const ecKeys = (namedCurve = 'P-256') => generateKeyPairSync('ec', { namedCurve });

/** An authority that is valid for some days, and signs certificates for names and IPv4 addresses. */
export class CertificateAuthority {
  readonly #keys = ecKeys();
  readonly #days: number;
  readonly certificate: Buffer;

  constructor(days = 1) {
    this.#days = days;
    this.certificate = this.#certify('test authority', this.#keys.publicKey, [
      extension('2.5.29.19', true, sequence(tlv(0x01, Buffer.from([0xff])))),
    ]);
  }

  /** A certificate for these subject alternative names. */
  issue(...names: readonly string[]): Certificate {
    return this.#issue(ecKeys(), names);
  }

  /** The same, with a key of another curve. */
  issueOf(namedCurve: string, ...names: readonly string[]): Certificate {
    return this.#issue(ecKeys(namedCurve), names);
  }

  #issue({ publicKey, privateKey }: KeyPairKeyObjectResult, names: readonly string[]): Certificate {
    const alternatives = names.map((name) =>
      /^[\d.]+$/.test(name)
        ? tlv(0x87, Buffer.from(name.split('.').map(Number)))
        : tlv(0x82, Buffer.from(name)),
    );
    const extensions = [extension('2.5.29.17', false, sequence(...alternatives))];
    return {
      certificate: this.#certify(names[0]!, publicKey, extensions),
      key: Buffer.from(privateKey.export({ type: 'pkcs8', format: 'pem' })),
    };
  }

  #certify(subject: string, publicKey: KeyObject, extensions: readonly Buffer[]): Buffer {
    const algorithm = sequence(objectId('1.2.840.10045.4.3.2'));
    const body = sequence(
      tlv(0xa0, tlv(0x02, Buffer.from([2]))),
      tlv(0x02, Buffer.from([serial++])),
      algorithm,
      name('test authority'),
      sequence(time(Date.now() - 3_600_000), time(Date.now() + this.#days * 86_400_000)),
      name(subject),
      publicKey.export({ type: 'spki', format: 'der' }),
      tlv(0xa3, sequence(...extensions)),
    );
    const signature = sign('sha256', body, this.#keys.privateKey);
    const der = sequence(body, algorithm, tlv(0x03, Buffer.concat([Buffer.from([0]), signature])));
    return pem(der);
  }
}

/** The same certificate with an end that is no date; its signature is no longer right, which only a handshake would see. */
export function withoutEnd(certificate: Buffer): Buffer {
  const der = Buffer.from(certificate.toString().replace(/-----.*-----/g, ''), 'base64');
  const utcTime = Buffer.from([0x17, 13]);
  const end = der.indexOf(utcTime, der.indexOf(utcTime) + 1);
  // The month.
  der.write('13', end + 4);
  return pem(der);
}

function pem(der: Buffer): Buffer {
  const body = der.toString('base64').replace(/.{64}(?=.)/g, '$&\n');
  return Buffer.from(`-----BEGIN CERTIFICATE-----\n${body}\n-----END CERTIFICATE-----\n`);
}

/** A DER element: tag, length, value. */
function tlv(tag: number, ...values: readonly Buffer[]): Buffer {
  const value = Buffer.concat(values);
  const size = value.length;
  const length = size < 128 ? [size] : size < 256 ? [0x81, size] : [0x82, size >> 8, size & 255];
  return Buffer.concat([Buffer.from([tag, ...length]), value]);
}

function sequence(...values: readonly Buffer[]): Buffer {
  return tlv(0x30, ...values);
}

function objectId(dotted: string): Buffer {
  const [first, second, ...rest] = dotted.split('.').map(Number);
  const bytes = [first! * 40 + second!];
  for (const arc of rest) {
    const digits = [arc & 127];
    for (let high = arc >> 7; high > 0; high >>= 7) digits.unshift((high & 127) | 128);
    bytes.push(...digits);
  }
  return tlv(0x06, Buffer.from(bytes));
}

function name(commonName: string): Buffer {
  return sequence(tlv(0x31, sequence(objectId('2.5.4.3'), tlv(0x0c, Buffer.from(commonName)))));
}

function time(atMs: number): Buffer {
  const digits = new Date(atMs).toISOString().replace(/[-:T]|\.\d+/g, '');
  return tlv(0x17, Buffer.from(digits.slice(2)));
}

function extension(id: string, isCritical: boolean, value: Buffer): Buffer {
  const critical = isCritical ? [tlv(0x01, Buffer.from([0xff]))] : [];
  return sequence(objectId(id), ...critical, tlv(0x04, value));
}
