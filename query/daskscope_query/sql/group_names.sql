-- reads: groups
-- Name and computation of every task group of `clusters`.
SELECT cluster, boot, no, name, computation
FROM groups
WHERE list_contains($clusters::VARCHAR[], cluster)
