/** Errors in SCIM's own schema (RFC 7644, section 3.12). */
import { toGatewayError } from 'sluice';
import { OwnerMistake, UserMistake } from 'sluice/internal';

/** Keywords of errors whose status is 400 or 409. */
type ScimType =
  | 'invalidFilter'
  | 'tooMany'
  | 'uniqueness'
  | 'mutability'
  | 'invalidSyntax'
  | 'invalidPath'
  | 'noTarget'
  | 'invalidValue';

/** A request that is refused. The message is a sentence for the operator of the directory. */
export class ScimError extends Error {
  readonly status: number;
  readonly scimType: ScimType | undefined;

  constructor(status: number, message: string, scimType?: ScimType) {
    super(message);
    this.status = status;
    this.scimType = scimType;
  }
}

/** Returns the status and the body for an error. The body of a 500 has no details. */
export function errorBody(thrown: unknown): { readonly status: number; readonly body: object } {
  const error = knownError(thrown);
  const { status, scimType, message } = error;
  return {
    status,
    body: {
      schemas: ['urn:ietf:params:scim:api:messages:2.0:Error'],
      status: String(status),
      ...(scimType === undefined ? {} : { scimType }),
      detail: message,
    },
  };
}

function knownError(thrown: unknown): ScimError {
  if (thrown instanceof ScimError) return thrown;
  if (thrown instanceof UserMistake || thrown instanceof OwnerMistake)
    return new ScimError(400, thrown.message, 'invalidValue');
  const error = toGatewayError(thrown);
  if (error.code === 'internal_error')
    return new ScimError(500, 'The gateway failed to handle this request. See its log.');
  return new ScimError(error.status, error.message, error.status === 400 ? 'invalidSyntax' : undefined);
}
