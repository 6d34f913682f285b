-- reads: members
-- The software environments of one cluster's processes, and how many of each role run in one.
SELECT boot, role, python, packages, count(*) AS n
FROM members
WHERE cluster = $cluster AND packages IS NOT NULL
GROUP BY boot, role, python, packages
ORDER BY boot, n DESC, role, python, packages::VARCHAR
