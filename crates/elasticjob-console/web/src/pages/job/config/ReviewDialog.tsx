import { Button, Group, Modal, Stack, Text } from "@mantine/core";

import type { ConfigPlan } from "../../../api/types";
import { DifferencesTable } from "../../../components/DifferencesTable";
import { useText } from "../../../i18n";

/** Shows the changes before they are saved. */
export function ReviewDialog({
  job,
  plan,
  isBusy,
  onSave,
  onClose,
}: {
  job: string;
  plan: ConfigPlan;
  isBusy: boolean;
  onSave: () => void;
  onClose: () => void;
}) {
  const t = useText();
  return (
    <Modal
      opened
      size="lg"
      onClose={onClose}
      title={t.config.reviewTitle(job)}
      closeButtonProps={{ "aria-label": t.close }}
    >
      <Stack gap="sm">
        {plan.change === "new" ? (
          <Text size="sm">{t.config.isNew(job)}</Text>
        ) : (
          <DifferencesTable differences={plan.differences} />
        )}
        <Text size="sm" c="dimmed">
          {t.config.takesEffect}
        </Text>
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose}>
            {t.cancel}
          </Button>
          <Button loading={isBusy} onClick={onSave} data-autofocus>
            {t.config.save}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
