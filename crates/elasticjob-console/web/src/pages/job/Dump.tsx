import { Button, CopyButton, Group, Modal, ScrollArea } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";

import { ask } from "../../api/client";
import { atJob } from "../../api/queries";
import { useRegistry } from "../../app/registry";
import { useText } from "../../i18n";
import { Failure, Loading } from "../../parts/states";

/** Everything the registry holds of a job, as the ancestor prints it. */
export function Dump({ job, onClose }: { job: string; onClose: () => void }) {
  const t = useText();
  const registry = useRegistry();
  const dump = useQuery({
    queryKey: ["dump", registry, job],
    queryFn: () => ask<string>("GET", `${atJob(registry, job)}/dump`),
    gcTime: 0,
  });
  return (
    <Modal
      opened
      size="xl"
      onClose={onClose}
      title={t.job.dumpTitle(job)}
      closeButtonProps={{ "aria-label": t.close }}
    >
      {dump.isPending && <Loading />}
      {dump.isError && dump.data === undefined && <Failure error={dump.error} />}
      {dump.data !== undefined && (
        <>
          <ScrollArea.Autosize mah="60vh" viewportProps={{ tabIndex: 0 }}>
            <pre className="mono" style={{ margin: 0, fontSize: 12 }}>
              {dump.data}
            </pre>
          </ScrollArea.Autosize>
          <Group justify="flex-end" mt="sm">
            <CopyButton value={dump.data}>
              {({ copied, copy }) => (
                <Button variant="default" onClick={copy}>
                  {copied ? t.copied : t.copy}
                </Button>
              )}
            </CopyButton>
          </Group>
        </>
      )}
    </Modal>
  );
}
