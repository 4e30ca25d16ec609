import { describe, expect, test } from 'vitest';
import { entityPatterns } from '../../../plugins/guard/detectors/index.ts';
import { Matcher } from '../../../plugins/guard/patterns/matcher.ts';

function found(entity: string, text: string): readonly string[] {
  const matcher = new Matcher(entityPatterns([entity]), 8_192);
  return matcher.scan(text).spans.map(({ start, end }) => text.slice(start, end));
}

const key = 'x'.repeat(40);

/** By entity: what is found in a sentence, and what only looks like it. */
const cases: Readonly<Record<string, { readonly is: readonly string[]; readonly isNot: readonly string[] }>> =
  {
    card: {
      // Test numbers of Visa, Mastercard, American Express, Discover, Diners Club, JCB, UnionPay and Maestro.
      is: [
        '4111111111111111',
        '4111 1111 1111 1111',
        '5555-5555-5555-4444',
        '2223003122003222',
        '378282246310005',
        '3782 822463 10005',
        '6011111111111117',
        '30569309025904',
        '3530111333300000',
        '6205500000000000004',
        '6759649826438453',
      ],
      isNot: [
        '4111111111111112',
        '1234567890123456',
        '0000000000000000',
        '41111111111111110000000',
        '411111111111111',
      ],
    },
    iban: {
      // Examples of the IBAN Registry.
      is: [
        'DE89370400440532013000',
        'DE89 3704 0044 0532 0130 00',
        'GB29NWBK60161331926819',
        'FR1420041010050500013M02606',
        'NO9386011117947',
        'MT84MALT011000012345MTLCAST001S',
        'gb29 nwbk 6016 1331 9268 19',
      ],
      isNot: ['DE88370400440532013000', 'DE8937040044053201300', 'XX89370400440532013000'],
    },
    'us-ssn': {
      is: ['078-05-1120', '219 09 9999'],
      isNot: [
        '000-12-3456',
        '666-12-3456',
        '900-12-3456',
        '123-00-4567',
        '123-45-0000',
        '123456789',
        '1078-05-1120',
      ],
    },
    'uk-nino': {
      is: ['AB123456C', 'AB 12 34 56 C', 'jk 123456 d'],
      isNot: ['BG123456A', 'DA123456A', 'AO123456A', 'AB123456E', 'XAB123456C'],
    },
    'de-steuer-id': {
      is: ['86095742719', '36 574 261 809'],
      isNot: ['86095742718', '06095742719', '12345678901', '11111111111'],
    },
    'fr-nir': {
      is: ['255081416802538', '2 55 08 14 168 025 38'],
      isNot: ['255081416802539', '555081416802538', '255151416802538'],
    },
    'es-dni': {
      is: ['12345678Z', '12345678-z', 'X1234567L', 'Y-1234567-X'],
      isNot: ['12345678A', 'X1234567A', 'W1234567L'],
    },
    'it-codice-fiscale': {
      is: ['RSSMRA85T10A562S', 'rssmra85t10a562s'],
      isNot: ['RSSMRA85T10A562T', 'RSSMRA85F10A562S'],
    },
    'br-cpf': { is: ['529.982.247-25', '52998224725'], isNot: ['529.982.247-26', '111.111.111-11'] },
    'in-aadhaar': { is: ['2341 2341 2346', '234123412346'], isNot: ['2341 2341 2347', '1341 2341 2346'] },
    email: {
      is: [
        'ada@example.org',
        'ada.lovelace+x@mail.example.co.uk',
        'käthe@bücher.example',
        "o'neil@example.com",
      ],
      isNot: ['ada@', '@example.org', 'ada@localhost', 'ada at example.org'],
    },
    phone: {
      is: ['+49 170 1234567', '+1 (212) 555-0123', '0044 20 7946 0958', '+442079460958'],
      isNot: ['+1234', '12345678', '+1234567890123456'],
    },
    'phone-us': {
      is: ['(212) 555-0123', '212-555-0123', '1 212 555 0123'],
      isNot: ['2125550123', '112-555-0123', '212-155-0123'],
    },
    ip: {
      is: ['192.0.2.1', '2001:db8::1', 'fe80:0:0:0:200:f8ff:fe21:67cf', '::ffff:192.0.2.1'],
      isNot: ['256.1.1.1', '1.2.3', '12:30:45', 'a::b', 'std::vector'],
    },
    'private-key': {
      is: [
        `-----BEGIN PRIVATE KEY-----\n${'MIIEvQ/+\n'.repeat(200)}-----END PRIVATE KEY-----`,
        `-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF\n\n${'MIIEvQ/+\n'.repeat(9)}-----END RSA PRIVATE KEY-----`,
        `-----BEGIN OPENSSH PRIVATE KEY-----\\n${'b3BlbnNz'.repeat(9)}\\n-----END OPENSSH PRIVATE KEY-----`,
        `-----BEGIN EC PRIVATE KEY-----\n${'A'.repeat(64)}`,
      ],
      isNot: ['-----BEGIN PUBLIC KEY-----\nMIIB', '-----BEGIN PRIVATE KEY-----'],
    },
    'aws-key': {
      is: [
        `AKIA${'IOSFODNN7EXAMPLE'}`,
        `aws_secret_access_key = ${'wJalrXUtnFEMI/K7MDENG/bPxRfiCY'}EXAMPLEKEY`,
      ],
      isNot: ['AKIASHORT', `XAKIA${'IOSFODNN7EXAMPLE'}`],
    },
    'github-token': {
      is: [`ghp_${'a1B2'.repeat(9)}`, `github_pat_${'a1B2'.repeat(20)}`],
      isNot: ['ghp_short', `xghp_${'a1B2'.repeat(9)}`],
    },
    'slack-token': {
      is: [`xoxb-${'123456789012'}-abcdef`, `https://hooks.slack.com/services/${'T00/B00/'.repeat(4)}`],
      isNot: ['xoxb-1'],
    },
    'stripe-key': {
      is: [`sk_live_${'4eC39HqLyjWD'}`, `rk_test_${'4eC39HqLyjWD'}`],
      isNot: ['sk_live_x', 'pk'],
    },
    'openai-key': { is: [`sk-${key}`, `sk-proj-${key}_-`], isNot: ['sk-short', `task-${key}`] },
    'anthropic-key': { is: [`sk-ant-api03-${key}`], isNot: ['sk-ant-x'] },
    'google-key': { is: [`AIza${key.slice(0, 35)}`, `GOCSPX-${key}`], isNot: ['AIzaShort'] },
    jwt: {
      is: [
        'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3',
        'eyJhbGciOiJub25lIn0.eyJzdWIiOiIxMjM0In0.',
      ],
      isNot: ['eyJhbGci.x.y'],
    },
  };

describe.each(Object.entries(cases))('%s', (entity, { is, isNot }) => {
  test.each(is)('is found: %s', (text) => {
    expect(found(entity, `before ${text}, and after`)).toEqual([text]);
    expect(found(entity, text)).toEqual([text]);
    expect(found(entity, `(${text})`)).toEqual([text]);
  });

  test.each(isNot)('is not: %s', (text) => {
    expect(found(entity, `before ${text} after`)).toEqual([]);
  });
});

test('every entity of the table has its cases', () => {
  expect(entityPatterns(['all'])).toHaveLength(Object.keys(cases).length);
});

test('all entities are found together, also where they stand side by side', () => {
  const text = 'call +49 170 1234567 4111 1111 1111 1111 ada@example.org';
  const matcher = new Matcher(entityPatterns(['all']), 8_192);
  const covered = matcher
    .scan(text)
    .spans.map(({ start, end }) => text.slice(start, end))
    .join(' ');
  for (const part of ['+49 170 1234567', '4111 1111 1111 1111', 'ada@example.org'])
    expect(covered).toContain(part);
});
