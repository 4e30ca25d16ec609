/** Shows the link of an invitation, which cannot be had again. */
import { Copy } from '../parts/copy.tsx';
import { Dialog } from '../parts/dialog.tsx';

/** Shows where whoever holds this token sets a password. */
export function InvitationOnce({ token, onClose }: { readonly token: string; readonly onClose: () => void }) {
  const link = `${location.origin}${location.pathname}#/invitation/${token}`;
  return (
    <Dialog
      title="Send this link to the user"
      firm
      onClose={onClose}
      bottom={
        <button type="button" className="button primary" onClick={onClose}>
          I have copied it
        </button>
      }
    >
      <p>It is shown only this once. Whoever has it sets the password, one time.</p>
      <div className="secret">
        <code data-secret>{link}</code>
        <Copy text={link} />
      </div>
    </Dialog>
  );
}
