/**
 * Golden vectors of the hash, computed with the reference implementation of MurmurHash64A in C. The TypeScript
 * implementation and the filter's are both tested against them.
 */

const seeds = [0n, 1n, 0x0123456789abcdefn, 0xffffffffffffffffn];

const table: readonly [text: string, ...hashes: bigint[]][] = [
  ['', 0x0000000000000000n, 0xc6a4a7935bd064dcn, 0x1b8d96b11cf99946n, 0xb0d9485c2cd761b2n],
  ['a', 0x071717d2d36b6b11n, 0xa52be5b3f6674b2an, 0xee14e19e92829465n, 0x3434d0b6f5d67f81n],
  ['abcdefg', 0x241aa52b0a62005dn, 0xfc9415b9d2ef3b6cn, 0x49a1a51c4ecf3087n, 0xc2c0598d40332e59n],
  ['abcdefgh', 0xafdb0257ff41aa98n, 0xf65afeaec8664640n, 0x863e13c882a38376n, 0x271a7e3cd5778f54n],
  ['abcdefghi', 0xc9b9d84356146ac2n, 0xc0b48f4bba30db08n, 0x928d5a1bec2d0a36n, 0x96d516ecfb56dfban],
  ['127.0.0.1:8000', 0x2a839b62f63e84e4n, 0x92382f74ae26b851n, 0x690d6071c1927149n, 0x510ecbbde81d4150n],
  ['llama-70b', 0xbd1c445169d99cddn, 0x8be55699f6be8ec7n, 0x76244871c34db03an, 0x4dfd72064e9b3482n],
  [
    'The quick brown fox jumps over the lazy dog',
    0x5589ca33042a861bn,
    0xd8d4e6baf2275040n,
    0xc9e21e5d9e6a87dcn,
    0x5cf91346476cb789n,
  ],
  ['ä€🙂', 0xab50b635400b8d77n, 0x80395190e63a375dn, 0x203b610e7f45e234n, 0x42365b8c139fc9f6n],
];

export const hashVectors = table.flatMap(([text, ...hashes]) =>
  hashes.map((hash, index) => ({ text, seed: seeds[index]!, hash })),
);

export const mixVectors: readonly { value: bigint; mixed: bigint }[] = [
  { value: 0n, mixed: 0n },
  { value: 1n, mixed: 0xb456bcfc34c2cb2cn },
  { value: 0x0123456789abcdefn, mixed: 0x87cbfbfe89022cean },
  { value: 0xffffffffffffffffn, mixed: 0x64b5720b4b825f21n },
];

export const keyVectors: readonly {
  salt: string;
  tenant: string;
  key: string;
  hash: bigint;
  shedPoint: number;
}[] = [
  { salt: 'pepper', tenant: '', key: '2345', hash: 0x6ac7e3059249e7ban, shedPoint: 0x94a44f21 },
  { salt: 'pepper', tenant: 'org_1', key: '2345', hash: 0xa3e24b94e235d001n, shedPoint: 0xfc0f0dcf },
  { salt: 'pepper', tenant: 'org_12345', key: '', hash: 0x34d35bbc3b420c24n, shedPoint: 0x9a47ef03 },
];
