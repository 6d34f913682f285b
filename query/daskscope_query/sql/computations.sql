-- reads: computations, groups, exceptions
-- One cluster's computations, latest first; `failed` if an exception belongs to one.
WITH failed AS (
    SELECT DISTINCT e.boot, g.computation AS no
    FROM exceptions e
    JOIN groups g ON g.cluster = e.cluster AND g.boot = e.boot AND g.no = e.group_no
    WHERE e.cluster = $cluster AND g.computation IS NOT NULL
)
SELECT c.*, f.no IS NOT NULL AS failed
FROM computations c
LEFT JOIN failed f USING (boot, no)
WHERE c.cluster = $cluster
ORDER BY c.start_at DESC, c.boot DESC, c.no DESC
LIMIT $limit OFFSET $offset
