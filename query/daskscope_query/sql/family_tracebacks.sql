-- reads: exceptions
-- Of each family of exceptions in these `clusters`, the traceback of its last failure, by cluster.
SELECT
    cluster,
    coalesce(origin, 'user') AS origin,
    type,
    family_text(text) AS pattern,
    arg_max(traceback, (last_at, boot, no)) AS traceback
FROM exceptions
WHERE list_contains($clusters::VARCHAR[], cluster)
GROUP BY ALL
