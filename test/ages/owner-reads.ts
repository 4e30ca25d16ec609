/** Admin reads of a database whose keys have owners: sums and lists of organisations, teams, members and keys. */
import { keyId } from './fill.ts';
import { memberId, organisationId, teamId } from './owners.ts';
import type { Age } from './statements.ts';

type Reads = readonly (readonly [name: string, path: string])[];

const day = 86_400_000;

/** Returns the reads; none where keys have no owners. */
export function ownerReadsOf({ days, members, teams, keys }: Age, now: number): Reads {
  if (members === 0) return [];
  const since = now - Math.min(days, 30) * day;
  const month = `since=${since}`;
  const fortnight = `since=${now - Math.min(days / 2, 15) * day}`;
  const [team, member, organisation] = [
    `team=${teamId(3)}`,
    `member=${memberId(3)}`,
    'organisation=',
  ] as const;
  const sums: Reads = (['organisation', 'team', 'member', 'keyId'] as const).flatMap((by) => [
    [`sums by ${by}, 30 days`, `usage/sums?by=${by}&${month}&limit=200`],
    [
      `sums by ${by}, 15 days, with those before`,
      `usage/sums?by=${by}&${fortnight}&limit=200&compare=previous`,
    ],
  ]);
  return [
    ...sums,
    ['sums by member, 30 days, 5,000 listed', `usage/sums?by=member&${month}&limit=5000`],
    ['sums by keyId, 30 days, 5,000 listed', `usage/sums?by=keyId&${month}&limit=5000`],
    ['sums by keyId, 30 days, most calls', `usage/sums?by=keyId&${month}&limit=200&order=calls`],
    ['sums by keyId of failed calls, 30 days', `usage/sums?by=keyId&${month}&limit=200&outcome=failed`],
    [
      'sums by keyId of a model, 7 days',
      `usage/sums?by=keyId&since=${now - 7 * day}&limit=200&model=model-3`,
    ],
    ['sums by keyId of a team, 30 days', `usage/sums?by=keyId&${month}&limit=200&${team}`],
    [
      'sums by keyId of an organisation, 30 days',
      `usage/sums?by=keyId&${month}&limit=200&${organisation}${organisationId(1)}`,
    ],
    [
      'sums by member of an organisation, 30 days',
      `usage/sums?by=member&${month}&limit=200&${organisation}${organisationId(1)}`,
    ],
    ['sums by member of a team, 30 days', `usage/sums?by=member&${month}&limit=200&${team}`],
    ['sums by day of a member, 30 days', `usage/sums?by=day&${month}&${member}`],
    ['sums by model of a team, 30 days', `usage/sums?by=model&${month}&${team}`],
    ['overview of an organisation, 30 days', `overview?range=30d&${organisation}${organisationId(1)}`],
    ['overview of a team, 30 days', `overview?range=30d&${team}`],
    ['overview of a member, 30 days', `overview?range=30d&${member}`],
    ['overview of a key, 30 days', `overview?range=30d&keyId=${keyId(0)}`],
    ['list of an organisation', `usage?limit=50&${organisation}${organisationId(1)}`],
    ['list of a team', `usage?limit=50&${team}`],
    ['list of a member', `usage?limit=50&${member}`],
    ['list of a member with few calls', `usage?limit=50&member=${memberId(members - 2)}`],
    ['list of a tag', 'usage?limit=50&tag=project-3'],
    ['list of a tag with few calls', 'usage?limit=50&tag=project-rare'],
    ['list of a tag without calls', 'usage?limit=50&tag=nothing'],
    ['list of an end user', 'usage?limit=50&endUser=user-20'],
    ['list of an end user with few calls', 'usage?limit=50&endUser=user-rare'],
    ['list of an end user without calls', 'usage?limit=50&endUser=nobody'],
    ['longest calls of a tag with few', 'usage?limit=50&sort=duration&tag=project-rare'],
    ...listsOf({ members, teams, keys }),
  ];
}

function listsOf({ members, teams, keys }: Pick<Age, 'members' | 'teams' | 'keys'>): Reads {
  const middle = (count: number): string => String(Math.floor(count / 2)).slice(1);
  return [
    ['members', 'owners?kind=member&limit=100'],
    ['members, the last page', `owners?kind=member&limit=100&after=${memberId(members - 101)}`],
    ['members by a part of the name', `owners?kind=member&limit=100&search=ber%20${middle(members)}`],
    ['members by a text that none has', 'owners?kind=member&limit=100&search=nobody%20has%20this'],
    ['members of an organisation', `owners?kind=member&limit=100&organisation=${organisationId(1)}`],
    ['teams', 'owners?kind=team&limit=100'],
    ['teams by a part of the name', `owners?kind=team&limit=100&search=am%20${middle(teams)}`],
    ['one member', `owners/${memberId(3)}`],
    ['keys', 'keys?limit=100'],
    ['keys with spend', 'keys?limit=100&spend=true'],
    ['500 keys with spend', 'keys?limit=500&spend=true'],
    ['keys with the highest spend', 'keys?limit=100&sort=spend'],
    ['keys of a team with the highest spend', `keys?limit=100&sort=spend&owner=${teamId(3)}`],
    ['keys of a team', `keys?limit=100&owner=${teamId(3)}`],
    ['keys of a member', `keys?limit=100&owner=${memberId(3)}`],
    ['keys of a team by a part of the name', `keys?limit=100&owner=${teamId(3)}&search=eam`],
    ['keys by a part of the name', `keys?limit=100&search=am%20${middle(keys)}`],
    ['keys by a part of the id', `keys?limit=100&search=${keyId(keys - 3).slice(-12)}`],
    ['keys by a text that none has', 'keys?limit=100&search=nobody%20has%20this'],
    ['keys by two characters that none has', `keys?limit=100&search=${encodeURIComponent('ß?')}`],
    ['one key', `keys/${keyId(Math.floor(keys / 2))}`],
  ];
}
