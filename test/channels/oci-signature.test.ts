import { createPrivateKey } from 'node:crypto';
import { expect, test } from 'vitest';
import { ociHeaders } from '../../channels/oci/signature.ts';

/**
 * The test values of Oracle's own documentation, its key for them among these: whoever reads the page has it.
 * https://docs.oracle.com/en-us/iaas/Content/API/Concepts/signingrequests.htm
 */
const privateKey = createPrivateKey(`-----BEGIN RSA PRIVATE KEY-----
MIICXgIBAAKBgQDCFENGw33yGihy92pDjZQhl0C36rPJj+CvfSC8+q28hxA161QF
NUd13wuCTUcq0Qd2qsBe/2hFyc2DCJJg0h1L78+6Z4UMR7EOcpfdUE9Hf3m/hs+F
UR45uBJeDK1HSFHD8bHKD6kv8FPGfJTotc+2xjJwoYi+1hqp1fIekaxsyQIDAQAB
AoGBAJR8ZkCUvx5kzv+utdl7T5MnordT1TvoXXJGXK7ZZ+UuvMNUCdN2QPc4sBiA
QWvLw1cSKt5DsKZ8UETpYPy8pPYnnDEz2dDYiaew9+xEpubyeW2oH4Zx71wqBtOK
kqwrXa/pzdpiucRRjk6vE6YY7EBBs/g7uanVpGibOVAEsqH1AkEA7DkjVH28WDUg
f1nqvfn2Kj6CT7nIcE3jGJsZZ7zlZmBmHFDONMLUrXR/Zm3pR5m0tCmBqa5RK95u
412jt1dPIwJBANJT3v8pnkth48bQo/fKel6uEYyboRtA5/uHuHkZ6FQF7OUkGogc
mSJluOdc5t6hI1VsLn0QZEjQZMEOWr+wKSMCQQCC4kXJEsHAve77oP6HtG/IiEn7
kpyUXRNvFsDE0czpJJBvL/aRFUJxuRK91jhjC68sA7NsKMGg5OXb5I5Jj36xAkEA
gIT7aFOYBFwGgQAQkWNKLvySgKbAZRTeLBacpHMuQdl1DfdntvAyqpAZ0lY0RKmW
G6aFKaqQfOXKCyWoUiVknQJAXrlgySFci/2ueKlIE1QqIiLSZ8V8OlpFLRnb1pzI
7U1yQXnTAEFYM560yJlzUpOb1V4cScGd365tiSMvxLOvTA==
-----END RSA PRIVATE KEY-----`);
const keyId =
  'ocid1.tenancy.oc1..aaaaaaaaba3pv6wkcr4jqae5f15p2b2m2yt2j6rx32uzr4h25vqstifsfdsq/ocid1.user.oc1..aaaaaaaat5nvwcna5j6aqzjcaty5eqbb6qt2jvpkanghtgdaqedqw3rynjq/20:3b:97:13:55:1c:5b:0d:d3:37:d8:50:4e:c5:3a:34';
const compartment = 'ocid1.compartment.oc1..aaaaaaaam3we6vgnherjq5q2idnccdflvjsnog7mlr6rtdb25gilchfeyjxa';
const volume = 'ocid1.volume.oc1.phx.abyhqljrgvttnlx73nmrwfaux7kcvzfs3s66izvxf2h4lgvyndsdsnoiwr5q';
const date = 'Thu, 05 Jan 2014 21:31:40 GMT';
const authorizationOf = (headers: string, signature: string): string =>
  `Signature version="1",headers="${headers}",keyId="${keyId}",algorithm="rsa-sha256",signature="${signature}"`;

test('a GET is signed as the documentation shows it', async () => {
  const query = `availabilityDomain=Pjwf%3A%20PHX-AD-1&compartmentId=${compartment}&displayName=TeamXInstances&volumeId=${volume}`;
  const url = `https://iaas.us-phoenix-1.oraclecloud.com/20160918/instances?${query}`;
  expect(await ociHeaders({ url, method: 'GET' }, { keyId, privateKey }, date)).toEqual({
    date,
    authorization: authorizationOf(
      'date (request-target) host',
      'GBas7grhyrhSKHP6AVIj/h5/Vp8bd/peM79H9Wv8kjoaCivujVXlpbKLjMPeDUhxkFIWtTtLBj3sUzaFj34XE6YZAHc9r2DmE4pMwOAy/kiITcZxa1oHPOeRheC0jP2dqbTll8fmTZVwKZOKHYPtrLJIJQHJjNvxFWeHQjMaR7M=',
    ),
  });
});

test('a POST is signed with its body as the documentation shows it', async () => {
  const body = `{
    "compartmentId": "${compartment}",
    "instanceId": "ocid1.instance.oc1.phx.abuw4ljrlsfiqw6vzzxb43vyypt4pkodawglp3wqxjqofakrwvou52gb6s5a",
    "volumeId": "${volume}"
}`;
  const url = 'https://iaas.us-phoenix-1.oraclecloud.com/20160918/volumeAttachments';
  expect(await ociHeaders({ url, body }, { keyId, privateKey }, date)).toEqual({
    date,
    'content-length': '316',
    'content-type': 'application/json',
    'x-content-sha256': 'V9Z20UJTvkvpJ50flBzKE32+6m2zJjweHpDMX/U4Uy0=',
    authorization: authorizationOf(
      'date (request-target) host content-length content-type x-content-sha256',
      'Mje8vIDPlwIHmD/cTDwRxE7HaAvBg16JnVcsuqaNRim23fFPgQfLoOOxae6WqKb1uPjYEl0qIdazWaBy/Ml8DRhqlocMwoSXv0fbukP8J5N80LCmzT/FFBvIvTB91XuXI3hYfP9Zt1l7S6ieVadHUfqBedWH0itrtPJBgKmrWso=',
    ),
  });
});

test('a form is refused: its bytes are not known yet when it is signed', async () => {
  const form = [{ name: 'a', value: 'b' }] as never;
  await expect(
    ociHeaders({ url: 'https://a.oraclecloud.com/', body: form }, { keyId, privateKey }),
  ).rejects.toThrow('Forms cannot be signed');
});
