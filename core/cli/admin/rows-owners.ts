/** Commands about organisations, teams, members, service accounts, users and tokens. */
import type { Row } from './row.ts';
import type { ThingKind } from './things.ts';

const ownerColumns = ['id', 'name', 'organisation', 'budgets', 'requestsPerMinute', 'enabled'] as const;

/** The limits that every owner may have. */
const limits = [
  'name',
  'note',
  'models',
  'budgets',
  'endUserBudget',
  'requestsPerMinute',
  'tokensPerMinute',
  'concurrency',
  'addresses',
] as const;

/** Returns the commands about owners of one kind. `kind` is its name in the admin API. */
function ownerRows(group: ThingKind & string, kind: string, more: readonly string[]): readonly Row[] {
  const what = group.replace('-', ' ');
  const aThing = `${what.startsWith('o') ? 'an' : 'a'} ${what}`;
  const one = { name: group.toUpperCase().replace('-', '_'), field: 'id', thing: group } as const;
  return [
    {
      group,
      verb: 'list',
      summary: `Lists ${what}s with their budgets and spending`,
      operation: 'listOwners',
      fixed: { kind },
      options: ['search', ...(kind === 'organisation' ? [] : ['organisation'])],
      shown: {
        list: 'owners',
        columns: ownerColumns.filter((column) => column !== more[0] || kind !== 'organisation'),
      },
    },
    {
      group,
      verb: 'show',
      summary: `Shows one ${what} with its limits`,
      operation: 'findOwner',
      words: [one],
    },
    {
      group,
      verb: 'create',
      summary: `Creates ${aThing} and prints its id`,
      operation: 'createOwner',
      words: [{ name: 'NAME', field: 'name' }],
      fixed: { kind },
      options: [...limits.slice(1), ...more],
      shown: { output: 'id', says: `Created the ${what} "{name}":` },
    },
    {
      group,
      verb: 'update',
      summary: `Changes ${aThing}; --clear-… removes a limit`,
      operation: 'updateOwner',
      words: [one],
      options: [...limits, ...more],
      shown: { output: 'id', says: `Changed the ${what} "{name}":` },
    },
    ...([true, false] as const).map((enabled): Row => ({
      group,
      verb: enabled ? 'enable' : 'disable',
      summary: enabled
        ? `Enables ${aThing}: its keys are valid again`
        : `Disables ${aThing}: all its keys become invalid`,
      operation: 'updateOwner',
      words: [one],
      fixed: { enabled },
      options: [],
      shown: { output: 'id', says: `${enabled ? 'Enabled' : 'Disabled'} the ${what} "{name}":` },
    })),
    {
      group,
      verb: 'delete',
      summary: `Deletes ${aThing} permanently; its keys are invalid until they get another owner`,
      operation: 'deleteOwner',
      words: [one],
      asks: `Delete the ${what} "{name}" ({id})?`,
      shown: { says: `Deleted the ${what} "{name}" ({id}).` },
    },
  ];
}

const user = { name: 'USER', field: 'id', thing: 'user' } as const;
const userColumns = ['id', 'email', 'name', 'role', 'organisation', 'teams', 'enabled', 'lastSignInAt'];

const userRows: readonly Row[] = [
  {
    group: 'user',
    verb: 'list',
    summary: 'Lists users',
    operation: 'listUsers',
    options: ['organisation', 'team', 'role', 'search'],
    shown: { list: 'users', columns: userColumns },
  },
  { group: 'user', verb: 'show', summary: 'Shows one user', operation: 'findUser', words: [user] },
  {
    group: 'user',
    verb: 'create',
    summary: 'Creates a user and prints an invitation link, with which the user sets a password',
    operation: 'createUser',
    words: [{ name: 'EMAIL', field: 'email' }],
    shown: {
      output: 'invitation.token',
      link: '/dashboard/#/invitation/',
      says: 'Created the user. The invitation link is shown only this once, and is valid until {invitation.expiresAt}:',
    },
  },
  {
    group: 'user',
    verb: 'update',
    summary: 'Changes a user: --role, --teams TEAM,TEAM:lead, --organization',
    operation: 'updateUser',
    words: [user],
    options: ['email', 'name', 'role', 'organisation', 'teams'],
    shown: { output: 'id', says: 'Changed the user "{email}":' },
  },
  ...([true, false] as const).map((enabled): Row => ({
    group: 'user',
    verb: enabled ? 'enable' : 'disable',
    summary: enabled
      ? 'Enables a user: the user can sign in again'
      : 'Disables a user: ends the sessions and invalidates the keys of the user',
    operation: 'updateUser',
    words: [user],
    fixed: { enabled },
    options: [],
    shown: { output: 'id', says: `${enabled ? 'Enabled' : 'Disabled'} the user "{email}":` },
  })),
  {
    group: 'user',
    verb: 'invite',
    summary: 'Prints a new invitation link, which replaces the previous one',
    operation: 'inviteUser',
    words: [user],
    shown: {
      output: 'token',
      link: '/dashboard/#/invitation/',
      says: 'The invitation link is shown only this once, and is valid until {expiresAt}:',
    },
  },
  {
    group: 'user',
    verb: 'reset-second-factor',
    summary: 'Removes the second factor of a user who has lost it',
    operation: 'resetSecondFactor',
    words: [user],
    asks: 'Remove the second factor of "{email}" ({id})?',
    shown: { output: 'id', says: 'Removed the second factor of "{email}":' },
  },
  {
    group: 'user',
    verb: 'delete',
    summary: 'Deletes a user permanently and disables its member',
    operation: 'deleteUser',
    words: [user],
    asks: 'Delete the user "{email}" ({id})?',
    shown: { says: 'Deleted the user "{email}" ({id}).' },
  },
];

const tokenRows: readonly Row[] = [
  {
    group: 'token',
    verb: 'list',
    summary: 'Lists the tokens of the admin API, without their values',
    operation: 'listTokens',
    shown: {
      list: 'tokens',
      columns: ['id', 'name', 'role', 'scopes', 'organisation', 'state', 'expiresAt', 'lastUsedAt'],
    },
  },
  {
    group: 'token',
    verb: 'create',
    summary: 'Creates a token of the admin API and prints it only this once',
    operation: 'createToken',
    words: [{ name: 'NAME', field: 'name' }],
    shown: {
      output: 'value',
      says: 'Created the token "{token.name}" ({token.id}). It is shown only this once:',
    },
  },
  {
    group: 'token',
    verb: 'revoke',
    summary: 'Revokes a token at once on all gateways',
    operation: 'revokeToken',
    words: [{ name: 'TOKEN', field: 'id', thing: 'token' }],
    asks: 'Revoke the token "{name}" ({id})?',
    shown: { says: 'Revoked the token "{name}" ({id}).' },
  },
];

const target = { name: 'KEY_OR_OWNER', field: 'id', thing: 'budgeted' } as const;
const isKey = ({ id }: Readonly<Record<string, unknown>>): boolean => String(id).startsWith('key_');
const changeBudgets: Row['operation'] = (thing) => (isKey(thing) ? 'updateKey' : 'updateOwner');
const hasBudget = (item: Readonly<Record<string, unknown>>): boolean =>
  (Array.isArray(item['budgets']) && item['budgets'].length > 0) || item['endUserBudget'] !== undefined;
const budgetColumns = ['id', 'name', 'budgets', 'endUserBudget'];

const budgetRows: readonly Row[] = [
  {
    group: 'budget',
    verb: 'list',
    summary: 'Lists owners that have budgets, with their spending',
    operation: 'listOwners',
    options: ['kind', 'organisation', 'search'],
    shown: { list: 'owners', columns: ['id', 'kind', ...budgetColumns.slice(1)], keeps: hasBudget },
  },
  {
    group: 'budget',
    verb: 'keys',
    summary: 'Lists API keys that have budgets, with their spending',
    operation: 'listKeys',
    options: ['owner', 'search'],
    shown: { list: 'keys', columns: budgetColumns, keeps: hasBudget },
  },
  {
    group: 'budget',
    verb: 'show',
    summary: 'Shows the budgets of a key or an owner, and the budget of each of its end users',
    operation: (thing) => (isKey(thing) ? 'findKey' : 'findOwner'),
    words: [target],
    shown: { columns: ['id', 'kind', 'name', 'budgets', 'endUserBudget', 'pricing'] },
  },
  {
    group: 'budget',
    verb: 'set',
    summary:
      'Sets the budgets of a key or an owner, such as 25usd/month 2usd/5h, or the budget of its end users',
    operation: changeBudgets,
    words: [target, { name: 'AMOUNT/PERIOD', field: 'budgets', many: true, optional: true }],
    options: ['endUserBudget'],
    shown: { columns: budgetColumns },
  },
  {
    group: 'budget',
    verb: 'clear',
    summary: 'Removes all budgets of a key or an owner',
    operation: changeBudgets,
    words: [target],
    fixed: { budgets: null },
    options: [],
    asks: 'Remove all budgets of "{name}" ({id})?',
    shown: { columns: budgetColumns },
  },
];

/** The commands. */
export const peopleRows: readonly Row[] = [
  ...ownerRows('organization', 'organisation', ['pricing']),
  ...ownerRows('team', 'team', ['organisation', 'pricing']),
  ...ownerRows('member', 'member', ['organisation']),
  ...ownerRows('service-account', 'service-account', ['organisation']),
  ...userRows,
  ...tokenRows,
  ...budgetRows,
];
