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
      // Test numbers of https://docs.stripe.com/testing, and of Presidio's test_credit_card_recognizer.py.
      is: [
        '4242424242424242',
        '5200828282828210',
        '3056930009020004',
        '36227206271667',
        '6555900000604105',
        '3566002020360505',
        '6200000000000047',
        '4012888888881881',
        '4012-8888-8888-1881',
        '371449635398431',
        '5019717010103742',
        '6011000400000000',
        '3528000700000000',
        '4917300800000000',
        '4484070000000000',
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
        '1748503543012',
        '4012-8888-8888-1882',
        '36168002586008',
        // The identity of a telephone, as Wikipedia shows it (IMEI): a right digit, and JCB's beginning.
        '352099001761481',
        '4111111111111112',
        '1234567890123456',
        '0000000000000000',
        '41111111111111110000000',
        '411111111111111',
      ],
    },
    iban: {
      // Examples of the IBAN Registry, and others, of python-stdnum's test_iban.doctest.
      is: [
        ...`AD12 0001 2030 2003 5910 0100|AE070331234567890123456|AL47 2121 1009 0000 0002 3569 8741|AT61 1904 3002 3457 3201
AZ21NABZ00000000137010001944|BA39 1290 0794 0102 8494|BG80 BNBG 9661 1020 3456 78|BH67BMAG00001299123456|BR9700360305000010009795493P1
CH93 0076 2011 6238 5295 7|CY17 0020 0128 0000 0012 0052 7600|CZ94 5500 0000 0010 1103 8930|DK50 0040 0440 1162 43
DO28BAGR00000001212453611324|EE38 2200 2210 2014 5685|ES15-0049-1806-9121-1186-9374|ES91 2100 0418 4502 0005 1332|FI21 1234 5600 0007 85
FO62 6460 0001 6316 34|FR14 2004 1010 0505 0001 3M02 606|GE29 NB00 0000 0101 9049 17|GI75 NWBK 0000 0000 7099 453|GL89 6471 0001 0002 06
GR16 0110 1250 0000 0001 2300 695|GT82TRAJ01020000001210029690|HR12 1001 0051 8630 0016 0|HU42 1177 3016 1111 1018 0000 0000
IE29 AIBK 9311 5212 3456 78|IL62 0108 0000 0009 9999 999|IS14 0159 2600 7654 5510 7303 39|IT60 X054 2811 1010 0000 0123 456
JO94CBJO0010000000000131000302|KZ86125KZT5004100100|LB62 0999 0000 0001 0019 0122 9114|LI21 0881 0000 2324 013A A|LT12 1000 0111 0100 1000
LU28 0019 4006 4475 0000|LV80 BANK 0000 4351 9500 1|MC11 1273 9000 7000 1111 1000 h79|MD24AG000225100013104168|ME25 5050 0001 2345 6789 51
MK072 5012 0000 0589 84|MR13 0002 0001 0100 0012 3456 753|MU17 BOMM 0101 1010 3030 0200 000M UR|NL91 ABNA 0417 1643 00|NO07.8380.08.06006
PK36SCBL0000001123456702|PL61 1090 1014 0000 0712 1981 2874|PS92PALS000000000400123456702|PT50 0002 0123 1234 5678 9015 4
QA58DOHB00001234567890ABCDEFG|RO49 AAAA 1B31 0075 9384 0000|RS35 2600 0560 1001 6113 79|SA03 8000 0000 6080 1016 7519
SE45 5000 0000 0583 9825 7466|SI56 1910 0000 0123 438|SK31 1200 0000 1987 4263 7541|SM86 U032 2509 8000 0000 0270 100
TN59 1000 6035 1835 9847 8831|TR33 0006 1005 1978 6457 8413 26|VG96VPVG0000012345678901|XK051212012345678906|BE31435411161155`.split(
          /[|\n]/,
        ),
        'DE89370400440532013000',
        'DE89 3704 0044 0532 0130 00',
        'GB29NWBK60161331926819',
        'FR1420041010050500013M02606',
        'NO9386011117947',
        'MT84MALT011000012345MTLCAST001S',
        'gb29 nwbk 6016 1331 9268 19',
      ],
      isNot: [
        'AL48212110090000000235698741',
        'AD1210012030200359100100',
        'AT611804300234573201',
        'BE68530907547034',
        'CZ9455000000000101038930',
        'DE88370400440532013000',
        'DE8937040044053201300',
        'XX89370400440532013000',
      ],
    },
    'us-ssn': {
      // python-stdnum's us/ssn.py, Presidio's test_us_ssn_recognizer.py.
      is: ['536-90-4399', '078-05-1123', '078.05.1123', '078 05 1123', '078-05-1120', '219 09 9999'],
      isNot: [
        '1112-23333',
        '078-05-0000',
        '078 00 1123',
        '693-09.4444',
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
      // Presidio's test_uk_nino_recognizer.py.
      is: [
        'AA 12 34 56 B',
        'hh 01 02 03 d',
        'tw987654a',
        'PR 123612C',
        'YZ 61 48 68 B',
        'AB123456C',
        'jk 123456 d',
      ],
      isNot: [
        'AA 12 34 56 H',
        'FQ 00 00 00 C',
        'BG123612A',
        'nt 99 88 77 a',
        'UV 98 76 54 B',
        'BG123456A',
        'DA123456A',
        'AO123456A',
        'AB123456E',
        'XAB123456C',
      ],
    },
    'de-steuer-id': {
      // python-stdnum's test_de_idnr.doctest, Presidio's de_tax_id_recognizer.py.
      is: ['86095742719', '36 574 261 809', '11234567890', '11123456786'],
      isNot: [
        '36554266806',
        '12345678903',
        '11112345678',
        '11223456785',
        '01234567896',
        '86095742718',
        '06095742719',
        '12345678901',
        '11111111111',
      ],
    },
    'fr-nir': {
      // INSEE's page, python-stdnum's fr/nir.py.
      is: [
        '255081416802538',
        '2 55 08 14 168 025 38',
        '2 95 10 99 126 111 93',
        '253072B07300470',
        '253072A07300443',
      ],
      isNot: [
        '295109912611199',
        '253072C07300443',
        '6546546546546703',
        '255081416802539',
        '555081416802538',
        '255151416802538',
      ],
    },
    'es-dni': {
      // python-stdnum's es/dni.py and es/nie.py.
      is: ['54362315-K', 'x-2482300w', '12345678Z', '12345678-z', 'X1234567L', 'Y-1234567-X'],
      isNot: ['54362315Z', 'x-2482300a', '54362315', '12345678A', 'X1234567A', 'W1234567L'],
    },
    'it-codice-fiscale': {
      // python-stdnum's test_it_codicefiscale.doctest; the last five have letters in place of digits.
      is: [
        ...'MRTNTN23M02D969P RCCMNL83S18D969H MRSMSR81D60Z611H CNTCHR83T41D969D FOXDRA26C24H872Y MAILCU91A25F839D RSSMRA45C12F205C'.split(
          ' ',
        ),
        ...'RSSMRA45C12F20RX RSSMRA45C12F2L5N RSSMRA45C12F2LRI RSSMRAQRCMNFNLRG'.split(' '),
        'RSSMRA85T10A562S',
        'rssmra85t10a562s',
      ],
      isNot: ['CSTNGL22I10D086I', 'FOXDRA26C24H872A', 'RSSMRA85T10A562T', 'RSSMRA85F10A562S'],
    },
    // python-stdnum's br/cpf.py.
    'br-cpf': {
      is: ['390.533.447-05', '529.982.247-25', '52998224725'],
      isNot: ['231.002.999-00', '390.533.447=0', '529.982.247-26', '111.111.111-11'],
    },
    // UIDAI's example, Presidio's test_in_aadhaar_recognizer.py; the last one is a palindrome.
    'in-aadhaar': {
      is: [
        '312345678909',
        '3998-7654-3211',
        '3123:4567:8909',
        '400123456787',
        '2341 2341 2346',
        '234123412346',
      ],
      isNot: ['123456789012', '234123412347', '2341 2341 2347', '222222222222', '1341 2341 2346'],
    },
    email: {
      // Presidio's test_email_recognizer.py.
      is: [
        'info@presidio.site',
        'user@xn--80ak6aa92e.com',
        'a@xn--d1acufc.xn--p1ai',
        'ada@example.org',
        'ada.lovelace+x@mail.example.co.uk',
        'käthe@bücher.example',
        "o'neil@example.com",
      ],
      isNot: ['info@presidio.', 'ada@', '@example.org', 'ada@localhost', 'ada at example.org'],
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
      // Presidio's test_ip_recognizer.py.
      is: [
        '684D:1111:222:3333:4444:5555:6:77',
        '2345:0425:2CA1::0567:5673:23b5',
        'A099::09C0:876A:130B',
        'fe80::1',
        '192.0.2.1',
        '2001:db8::1',
        'fe80:0:0:0:200:f8ff:fe21:67cf',
        '::ffff:192.0.2.1',
      ],
      isNot: [
        '684D:1111:222:3333:4444:5555:77',
        '192.168.0',
        '::1',
        '256.1.1.1',
        '1.2.3',
        '12:30:45',
        'a::b',
        'std::vector',
      ],
    },
    'private-key': {
      is: [
        `-----BEGIN PRIVATE KEY-----\n${'MIIEvQ/+\n'.repeat(200)}-----END PRIVATE KEY-----`,
        `-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF\n\n${'MIIEvQ/+\n'.repeat(9)}-----END RSA PRIVATE KEY-----`,
        `-----BEGIN OPENSSH PRIVATE KEY-----\\n${'b3BlbnNz'.repeat(9)}\\n-----END OPENSSH PRIVATE KEY-----`,
        `-----BEGIN EC PRIVATE KEY-----\n${'A'.repeat(64)}`,
      ],
      isNot: [
        '-----BEGIN PUBLIC KEY-----\nMIIB',
        '-----BEGIN PRIVATE KEY-----',
        '-----BEGIN PRIVATE KEY-----\nanything\n-----END PRIVATE KEY-----',
      ],
    },
    // From here on the examples of gitleaks, in two parts, so that no scanner takes them for lost ones.
    'aws-key': {
      is: [
        `AKIA${'LALEMEL33243OLIB'}`,
        `ABSK${'QmVkcm9ja0FQSUtleS1'}${'EXAMPLE'.repeat(14)}EXM=`,
        `AKIA${'IOSFODNN7EXAMPLE'}`,
        `aws_secret_access_key = ${'wJalrXUtnFEMI/K7MDENG/bPxRfiCY'}EXAMPLEKEY`,
      ],
      isNot: ['TODAYINASIAASACKOFRICEFELLOVER', 'AKIASHORT', `XAKIA${'IOSFODNN7EXAMPLE'}`],
    },
    'github-token': {
      is: [`ghp_${'a1B2'.repeat(9)}`, `github_pat_${'a1B2'.repeat(20)}`],
      isNot: ['ghp_short', `xghp_${'a1B2'.repeat(9)}`],
    },
    'slack-token': {
      is: [
        `xoxb-${'781236542736'}-2364535789652-GkwFDQoHqzXDVsC6GzqYUypD`,
        `xoxp-${'41684372915'}-1320496754-45609968301-e708ba56e1517a99f6b5fb07349476ef`,
        `xapp-${'1-A052FGTS2DL'}-5171572773297-610b6a11f4b7eb819e87b767d80e6575a3634791acb9a9ead051da879eb5b55e`,
        `http://hooks.slack.com/services/${'T024TTTTT'}/BBB72BBL/AZAAA9u0pA4ad666eMgbi555`,
        `xoxb-${'123456789012'}-abcdef`,
        `https://hooks.slack.com/services/${'T00/B00/'.repeat(4)}`,
      ],
      isNot: ['xoxb-xxx', 'xoxb-1'],
    },
    'stripe-key': {
      is: [
        `sk_test_${'51OuEMLAlTWGaDypq4P5cuDHbuKeG4tAGPYHJpEXQ7zE8mKK3jkhTFPvCxnSSK5zB5EQZrJsYdsatNmAHGgb0vSKD00GTMSWRHs'}`,
        `rk_prod_${'51OuEMLAlTWGaDypquDn9aZigaJOsa9NR1w1BxZXs9JlYsVVkv5XDu6aLmAxwt5Tgun5WcSwQMKzQyqV16c9iD4sx00BRijuoon'}`,
        `sk_live_${'4eC39HqLyjWD'}`,
        `rk_test_${'4eC39HqLyjWD'}`,
      ],
      isNot: [`task_test_${'x'.repeat(30)}`, 'sk_live_x', 'pk'],
    },
    'openai-key': {
      is: [
        `sk-svcacct-${'0Zkr4NUd4f_6LkfHfi3LlC8xKZQePXJCb21UiUWGX0F3_-6jv9PpY9JtaoooN9CCUPltpFiamwT3BlbkFJZVaaY7Z2aq_-I96dwiXeKVhRNi8Hs7uGmCFv5VTi2SxzmUsRgJoUJCbgPFWSXYDPPbYHJAuwIA'}`,
        `sk-admin-${'JWARXiHjpLXSh6W_0pFGb3sW7yr0cKheXXtWGMY0Q8kbBNqsxLskJy0LCOT3BlbkFJgTJWgjMvdi6YlPvdXRqmSlZ4dLK-nFxUG2d9Tgaz5Q6weGVNBaLuUmMV4A'}`,
        `sk-${key}`,
        `sk-proj-${key}_-`,
      ],
      isNot: ['sk-short', `task-${key}`],
    },
    'anthropic-key': {
      is: [
        `sk-ant-api03-${'abc123xyz-456def789ghij-klmnopqrstuvwx-3456yza789bcde-1234fghijklmnopby56aaaogaopaaaabc123xyzAA'}`,
        `sk-ant-admin01-${'abc12fake-456def789ghij-klmnopqrstuvwx-3456yza789bcde-12fakehijklmnopby56aaaogaopaaaabc123xyzAA'}`,
        `sk-ant-api03-${key}`,
      ],
      isNot: ['sk-ant-x'],
    },
    'google-key': {
      is: [`AIza${'SyNHxIf32IQ1a1yjl3ZJIqKZqzLAK1XhDk-'}`, `AIza${key.slice(0, 35)}`, `GOCSPX-${key}`],
      isNot: ['AIzaShort'],
    },
    jwt: {
      is: [
        'eyJhbGciOiJub25lIn0.eyJ1c2VybmFtZSI6Im1vcnR5Iiwic3ViIjoiMTIzIn0.',
        'eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJhIjoxLCJiIjoyLCJjIjozfQ.hxhGCCCmGV9nT1slief1WgEsOsfdnlVizNrODxfh1M8',
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
